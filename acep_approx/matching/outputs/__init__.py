"""What comes out of a batch: matches, points, counts."""
