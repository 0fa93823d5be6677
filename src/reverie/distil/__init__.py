"""The dream engine's pure parts: what to take, how to distil it, and how to check the result."""
