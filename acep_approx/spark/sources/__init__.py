"""What Spark reads."""
