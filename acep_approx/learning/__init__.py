"""What runs are worth, learned while a stream runs (``--learn``); ``training`` is from the past (``acep train``)."""
