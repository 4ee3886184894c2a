"""Maximal matches of what the cells can run: listed without the others, in order, each once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa

from acep_approx.arrays import Ints
from acep_approx.engines.batches import Grouped
from acep_approx.engines.maximal.engine import Held, MaximalCells, MaximalMatches
from acep_approx.matching.outputs.completed import CompletedMatches, Finder
