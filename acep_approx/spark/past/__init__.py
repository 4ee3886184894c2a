"""Training and tuning on Spark."""
