"""What runs are worth, learned from the past (``acep train``); ``learning`` is while a stream runs (``--learn``)."""
