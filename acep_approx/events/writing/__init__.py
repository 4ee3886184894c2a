"""Events and results as files and as text."""
