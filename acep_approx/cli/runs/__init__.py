"""What ``acep run`` does: one file for each kind of run; ``commands/run.py`` chooses."""
