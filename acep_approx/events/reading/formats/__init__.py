"""How a block of text becomes a record batch: one file for each way of writing events."""
