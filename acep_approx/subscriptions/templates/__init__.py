"""Queries that differ in constants alone: one automaton, one table of constants, an index over both."""
