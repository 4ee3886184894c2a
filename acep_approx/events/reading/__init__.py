"""Files, pipes and frames, read in batches."""
