"""A run: events of a source go on in order, through a stage, to an answer."""
