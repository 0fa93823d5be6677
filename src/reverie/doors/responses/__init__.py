"""The Responses window: around a client, as an Agents SDK session, and as a local proxy."""
