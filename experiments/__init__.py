"""One script per figure, table or claim; run as ``python -m experiments.NAME`` from the project's root."""
