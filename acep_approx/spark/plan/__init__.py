"""The plans of Spark, and the columns they move."""
