"""The order of a stream: which events are late, which wait, and when they go on."""
