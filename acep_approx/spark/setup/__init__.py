"""Starting Spark, sending the package to its workers, wording its failures."""
