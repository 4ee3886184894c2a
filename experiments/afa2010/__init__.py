"""The evaluation of hand-made automata over disordered streams again (Chandramouli et al., PVLDB 2010)."""
