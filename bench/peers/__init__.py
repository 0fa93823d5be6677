"""What is measured side by side: one module per peer, each run in an environment of its own."""
