"""The explorer of a run: its match points over time, its matches with their events, and what nearly matched."""
