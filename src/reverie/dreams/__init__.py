"""What shrinks memory: dreams, their gates, reports and archives, and consolidation."""
