"""``acep`` on Spark."""
