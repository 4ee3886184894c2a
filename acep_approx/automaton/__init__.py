"""How a query is looked for: letters, the automaton, its determinised form, and its picture."""
