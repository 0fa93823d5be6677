"""The command line, one module per noun. A command parses, calls the host once, and prints."""
