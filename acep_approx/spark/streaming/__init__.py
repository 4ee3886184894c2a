"""A streaming query, its driver, its metrics."""
