"""Forget, the forget ledger, and the re-scan of stored text."""
