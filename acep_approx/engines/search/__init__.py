"""The runs engine that searches ends of matches backwards, in the place of following runs."""
