"""Sets of queries: many on one stream, which come and go, and read what others publish."""
