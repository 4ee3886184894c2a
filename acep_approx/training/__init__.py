"""Learning from a past stream."""
