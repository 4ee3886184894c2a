"""What the explorer of a run shows, as plain data: chosen matches, their events, and what nearly matched."""
