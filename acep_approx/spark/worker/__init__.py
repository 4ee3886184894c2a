"""What a worker does; none of it needs Spark."""
