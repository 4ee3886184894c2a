"""Run by ``python -m experiments.active2011``."""

from experiments.active2011.evaluation import main

main()
