"""What a run learns on its way, and how well."""
