"""The shell around Spark: it moves Arrow columns into the same steps as the local matcher, and state back."""
