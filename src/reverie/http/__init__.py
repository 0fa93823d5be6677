"""Shared HTTP plumbing: who calls, how much they may send, what an error looks like, how pages and streams go on."""
