"""Run by ``python -m experiments.afa2010``."""

from experiments.afa2010.evaluation import main

main()
