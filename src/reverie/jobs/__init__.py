"""Workers: the definition of each job, and two ways to run them, in this process or by an engine on PostgreSQL."""
