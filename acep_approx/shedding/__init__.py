"""A load budget at work; ``budget`` is what is asked for and what came of it, as plain data."""
