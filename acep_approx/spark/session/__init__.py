"""Starting Spark, sending the package, wording its failures."""
