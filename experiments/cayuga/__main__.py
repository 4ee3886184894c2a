"""Run by ``python -m experiments.cayuga``."""

from experiments.cayuga.evaluation import main

main()
