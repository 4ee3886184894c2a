"""The real streams that experiments run on, and streams of the same shape that stand for those that are not here."""
