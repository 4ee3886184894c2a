"""One batch of events through an engine: prepared, matched, put out; the state can be saved between any two."""
