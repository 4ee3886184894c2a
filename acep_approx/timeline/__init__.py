"""Pictures of matches on a line of time."""
