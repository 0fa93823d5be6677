"""Protocols of others, one package each. None imports another."""
