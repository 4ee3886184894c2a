"""What a user holds: matches, matches within a budget, tuning."""
