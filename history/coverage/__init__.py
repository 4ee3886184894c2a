"""Which vertices cover most match bundles."""
