"""From what a store finds to what an agent reads: words, ranking, explanation, packing. Pure; no I/O, no clock."""
