"""The two engines: cells and runs."""
