"""Anthropic's memory surface: memory stores, dreams, the memory tool, and the window of the Messages API."""
