"""Speed and quality on Spark."""
