"""Adapters: Reverie as the memory of other frameworks, one module each.

A module imports its framework when it is imported itself. It uses the public library only, so the same code works on a
folder, on PostgreSQL and, over HTTP, on a running host.
"""
