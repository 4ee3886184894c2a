"""Run by ``python -m experiments.recordings``."""

from experiments.recordings.evaluation import main

if __name__ == "__main__":
    main()
