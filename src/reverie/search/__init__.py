"""From the finds of a store to an agent's context: words, ranking, explanation, packing. Pure; no I/O, no clock."""
