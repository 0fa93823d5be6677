"""Shrinking of memory: dreams, their gates, reports and archives, and consolidation."""
