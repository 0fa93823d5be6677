"""Test seams for conformance suites, loaded only when they are switched on."""
