"""The outside test suites that `make compat` runs against the adapters."""
