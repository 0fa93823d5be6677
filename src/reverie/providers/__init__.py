"""Adapters for the model-shaped ports: embedders, token counters, language models."""
