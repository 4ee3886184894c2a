"""Many queries on one stream, as Cayuga was measured."""
