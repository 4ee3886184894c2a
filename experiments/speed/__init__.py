"""How fast each part is."""
