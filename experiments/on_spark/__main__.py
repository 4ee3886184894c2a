"""Run by ``python -m experiments.on_spark``."""

from experiments.on_spark.evaluation import main

main()
