"""Where memory lives. `contract` is what the host uses; `sqlite` is one way to keep it."""
