"""The page of a run inside a load budget, and a few lines for the terminal."""
