"""SASE+'s evaluation again (Agrawal et al., SIGMOD 2008)."""
