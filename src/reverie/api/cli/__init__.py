"""The command line: one module per noun, each command parses, calls the host once, and renders."""
