"""Learning while the stream runs."""
