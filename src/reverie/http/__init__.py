"""Shared HTTP plumbing: authentication, limits, error bodies, pages and streams."""
