"""What is found inside a load budget, and what that takes."""
