"""Run by ``python -m experiments.peers``."""

from experiments.peers.evaluation import main

main()
