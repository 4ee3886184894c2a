"""Loops over the rows of tables that rules write and read."""
