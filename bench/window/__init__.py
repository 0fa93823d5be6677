"""Long sessions with a model: what they cost, and whether they get there."""
