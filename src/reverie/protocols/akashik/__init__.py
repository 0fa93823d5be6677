"""The Akashik Field: one memory that a team of agents shares. `field.py` is where every operation begins."""
