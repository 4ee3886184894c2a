"""Which engine runs a query, and why."""
