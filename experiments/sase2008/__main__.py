"""Run by ``python -m experiments.sase2008``."""

from experiments.sase2008.evaluation import main

main()
