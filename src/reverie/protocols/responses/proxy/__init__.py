"""The proxy: a bounded window for any client with a configurable base URL."""
