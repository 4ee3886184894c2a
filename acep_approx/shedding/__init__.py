"""A budget at work."""
