"""What Spark reports of a micro-batch."""

from __future__ import annotations

import json
from dataclasses import replace

from acep_approx.budget.audit import Members
from acep_approx.spark.streaming.metrics import Progress
from acep_approx.spark.worker.audited import GROUPS

REPORT = json.loads("""{
 "id": "c5d2d379-9e17-4760-a545-89204edeb121", "runId": "63721f38-e1dd-44e6-9f89-9c39594bc8ac", "name": "plain",
 "timestamp": "2026-11-22T05:38:56.083Z", "batchId": 1, "batchDuration": 3897, "numInputRows": 40,
 "inputRowsPerSecond": 0.5, "processedRowsPerSecond": 10.3,
 "durationMs": {"addBatch": 3074, "commitOffsets": 339, "latestOffset": 2, "triggerExecution": 3896, "walCommit": 117},
 "eventTime": {"avg": "1970-01-01T00:00:59.500Z", "max": "1970-01-01T00:01:19.000Z",
  "min": "1970-01-01T00:00:40.000Z", "watermark": "1970-01-01T00:00:34.000Z"},
 "stateOperators": [{"operatorName": "transformWithStateExec", "numRowsTotal": 2, "memoryUsedBytes": 1500},
  {"operatorName": "dedupe", "numRowsTotal": 3, "memoryUsedBytes": 500}],
 "sources": [{"description": "replay", "startOffset": {"event": 40, "of": 100}, "endOffset": {"event": 80, "of": 100},
  "latestOffset": {"event": 100, "of": 100}, "numInputRows": 40, "inputRowsPerSecond": 0.5,
  "processedRowsPerSecond": 10.3}],
 "sink": {"description": "NoopTable", "numOutputRows": 1},
 "observedMetrics": {"acep": {"events": 40, "relevant": 39, "matches": 2, "points": 2, "late": 1, "malformed": 0,
  "without_key": 0, "steps": 50, "bound": 100, "live": 4, "waiting": 3, "audited": 5, "kept": 4, "seconds": 0.25,
  "shed_0": 1, "shed_1": 2, "shed_2": 3, "shed_3": 0, "shed_4": 0, "price": 0.5, "version": 2,
  "audited_1": 5, "kept_1": 4, "cells": 1, "squares": 25, "audit": 1}}
}""")
"""What Spark 4.3 said of a micro-batch; the operators are made up."""


def progress(**changes) -> Progress:
    """A micro-batch whose audited match points, if there are any, lie in one cell."""
    found = Progress.of(REPORT)
    assert found is not None
    made = replace(found, **changes)
    group = [place == made.batch for place in range(GROUPS)]
    audited, kept = (tuple(number * is_in for is_in in group) for number in (made.audited, made.kept))
    audit = replace(made.audit, audited=audited, kept=kept, cells=Members(int(made.audited > 0), made.audited**2))
    return replace(made, audit=audit)
