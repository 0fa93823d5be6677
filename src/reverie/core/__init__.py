"""The pure core: entries, events and errors. No I/O, no clock, no network."""
