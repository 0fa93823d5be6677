"""The pure core: what a memory is, what an event is, what can go wrong. No I/O, no clock, no network."""
