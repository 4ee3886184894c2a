"""A load budget: how much work a run may do, what it spends it on, and what that costs in recall."""
