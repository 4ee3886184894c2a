"""Lists the matches that are in no larger one, without listing the others."""
