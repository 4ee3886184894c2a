"""Active rules, the text: tables of a shared store, and rules that read and write it."""
