"""Run by ``python -m experiments.learning``."""

from experiments.learning.evaluation import main

raise SystemExit(main())
