"""Stores: `contract` is the port that the host uses; `sqlite` and `postgres` implement it."""
