"""What is kept: entries and everything that may happen to one."""
