"""The cells engine: exact, nothing is ever shed."""
