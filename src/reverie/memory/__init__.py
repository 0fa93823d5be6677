"""Stored memory: entries, and every operation on them."""
