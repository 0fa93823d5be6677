"""Test seams and fixtures for conformance suites, served only while they are switched on."""
