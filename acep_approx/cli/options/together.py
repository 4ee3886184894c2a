"""What does not go together in a command: one table, by what a run is and what else is asked of it.

A pair that nobody refuses here works. Kinds of output, and what happens to late events, stand beside the options:
``output:count`` is ``--output count``, ``on_late:skip`` is ``--on-late skip``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import typer

from acep_approx.cli.options.budget import ExpandedBudgetOptions, LearningOptions, ReportOptions
from acep_approx.cli.options.groups import given_options
from acep_approx.cli.options.input import HOW_WRITTEN, NOT_ON_SPARK
from acep_approx.cli.options.output import ResultKind
from acep_approx.cli.options.programs import RULES_ONLY
from acep_approx.errors import UsageError


@dataclass(frozen=True)
class Refusal:
    """Some options that do not go with a kind of run.

    Attributes
    ----------
    code : str
    words : str
        The error, with ``{option}``, and ``{mine}`` for what says that a run is of this kind.
    hint : str
    options : frozenset of str
        Names of options, and ``option:value``.
    but : bool
        Whether it is all options but these.
    """

    code: str
    words: str
    hint: str
    options: frozenset[str]
    but: bool = False

    def is_about(self, name: str) -> bool:
        """Whether it refuses this option, or this value of one."""
        return ":" not in name and name not in self.options if self.but else name in self.options

    def error(self, option: str, mine: str) -> UsageError:
        """The error, where the option is spelled so."""
        return UsageError(self.words.format(option=option, mine=mine), code=self.code, hint=self.hint.format(mine=mine))


NOT_WITH = "{option} does not go with {mine}"
NOT_YET = "{option} and {mine} do not go together yet"
OF_USE_WITH = "{option} is of use with {mine} only"
RULES = "active rules"
"""What says that there are rules."""


def _of(code: str, words: str, hint: str, *options: str) -> Refusal:
    return Refusal(code, words, hint, frozenset(options))


def _all_but(code: str, words: str, hint: str, *options: str) -> Refusal:
    return Refusal(code, words, hint, frozenset(options), but=True)


def _outputs_but(*kinds: str) -> list[str]:
    return [f"output:{kind}" for kind in ResultKind if kind not in kinds]


def _names(*groups: Any) -> list[str]:
    return [field.name for group in groups for field in fields(group)]


COMMON = (
    *("query", "inputs", "input", "file", "output", "format", "page", "quiet", "log", "metrics_port", "flush"),
    *("time", "key", "type", "unit", "input_format", *HOW_WRITTEN),
    *("sort", "on_malformed", "rejects", "on_late", "late", "follow", "until_idle", "kafka_option"),
)
"""What goes with every program."""
ALONE = "leave it out, or leave out --spark"
AS_THEY_COME = "leave it out; of events that are late by so much at most: --watermark '10 s'"
IN_ORDER = "leave it out: events are put in order of time as far as they may be late"
FINAL = "leave it out: on Spark results are put out when they are final"
KEYS = "leave one of them out; keys are dropped of events in order: see --sort, and --reorder with --queries"
THREE = ("matches", "points", "count")
KEPT = ("matches", "points", "partial")
CHOOSE = f"choose {', '.join(THREE)}"

REFUSED: dict[str, tuple[Refusal, ...]] = {
    # --- programs -------------------------------------------------------------------------------------------------
    "set": (
        _all_but(
            "ACEP-U064",
            NOT_YET,
            "leave it out, or run the query by itself: acep run QUERY",
            *(*COMMON, "queries", "strict", "reorder", "stamp", "limit", "key_idle", "start"),
            *("checkpoint", "checkpoint_every", "finish"),
        ),
        _of("ACEP-U064", NOT_YET, CHOOSE, *_outputs_but(*THREE)),
    ),
    "no set": (_of("ACEP-U064", OF_USE_WITH, "add --queries FOLDER", "strict", "reorder", "stamp"),),
    "rules": (
        _all_but("ACEP-U064", NOT_YET, "leave it out", *COMMON, *RULES_ONLY),
        _of(
            "ACEP-U064", NOT_YET, "leave it out: FOR EACH POINT gives the points of a rule", *_outputs_but("matches")
        ),
    ),
    "rules without a store": (_of("ACEP-U064", OF_USE_WITH, "add --store FILE", "checkpoint_every", "finish"),),
    "no rules": (
        _of(
            "ACEP-U064",
            "{option} is of use with a file of rules only, and this is a query",
            "leave it out; a file of rules begins with TABLE or RULE",
            *RULES_ONLY,
        ),
    ),
    # --- what happens to events -----------------------------------------------------------------------------------
    "late events": (
        _of(
            "ACEP-U055",
            NOT_WITH,
            "leave one of them out",
            *_names(ExpandedBudgetOptions, LearningOptions, ReportOptions),
        ),
        _of("ACEP-U055", NOT_WITH, KEYS, "key_idle"),
        _of("ACEP-U055", NOT_WITH, IN_ORDER, "sort"),
        _of("ACEP-U055", NOT_WITH, f"{CHOOSE}, or leave out {{mine}}", *_outputs_but(*THREE)),
        _of(
            "ACEP-U055",
            NOT_WITH,
            "leave it out: late events are counted, and --late FILE writes them",
            "on_late:refuse",
        ),
    ),
    "changelog": (
        _of(
            "ACEP-U055",
            NOT_WITH,
            "leave one of them out: what counts is what remains at the end",
            "output:count",
        ),
    ),
    "events in order": (
        _of(
            "ACEP-S071",
            "{option} is of use with --spark only, or where events may be late or change",
            "add --spark, --watermark, --emit or --op; or show a column of the events: --bind COLUMN",
            "id",
        ),
    ),
    # --- live input -----------------------------------------------------------------------------------------------
    "whole input": (
        _of(
            "ACEP-U139",
            OF_USE_WITH,
            "add --follow, with a file or a folder; --until-idle '0 s' ends it when all has been read",
            *("until_idle", "checkpoint", "checkpoint_every"),
        ),
        _of("ACEP-U139", OF_USE_WITH, "name a topic: kafka://BROKER:9092/TOPIC", "kafka_option"),
    ),
    "live input": (
        _of("ACEP-U138", NOT_WITH, AS_THEY_COME, "sort"),
        _of("ACEP-U138", NOT_WITH, "leave it out: it reads the events twice", "expand"),
    ),
    "file that grows": (
        _of("ACEP-U138", NOT_WITH, "leave --follow out: --stream matches a folder that gets new files", "spark"),
    ),
    "topic": (
        _of(
            "ACEP-U138",
            NOT_WITH,
            "leave --spark out; a job in Python reads a topic by spark.readStream.format('kafka')",
            "spark",
        ),
    ),
    "no topic": (
        _of(
            "ACEP-U139",
            "{option} is of use with a topic of Kafka only",
            "leave it out, or name kafka://...",
            "kafka_option",
        ),
    ),
    "compressed": (_of("ACEP-U138", NOT_WITH, "choose matches, points or partial", "output:compressed"),),
    "no checkpoint": (_of("ACEP-U139", OF_USE_WITH, "add --checkpoint FOLDER", "checkpoint_every", "finish"),),
    "rules on live input": (
        _of("ACEP-U138", NOT_WITH, "say --store FILE: it keeps all that they need to go on", "checkpoint"),
    ),
    "checkpoint": (
        _of("ACEP-U138", NOT_WITH, "leave one of them out", "limit"),
        _of(
            "ACEP-U138",
            NOT_WITH,
            "leave one of them out; from Python: query.follow(..., budget=..., checkpoint=...)",
            "budget",
        ),
        _of("ACEP-U138", NOT_WITH, f"choose {', '.join(KEPT)}, or leave --checkpoint out", *_outputs_but(*KEPT)),
        _of("ACEP-U138", NOT_WITH, "say --watermark '0 s': late events are left out, too", "on_late:skip"),
    ),
    # --- Spark ----------------------------------------------------------------------------------------------------
    "here": (
        _of("ACEP-S037", OF_USE_WITH, "add --spark, or leave it out", "master"),
        _of(
            "ACEP-S071",
            OF_USE_WITH,
            "add --spark, or leave it out",
            *("shards", "stream", "trigger", "until_done"),
        ),
    ),
    "batch on Spark": (
        _of(
            "ACEP-S071",
            "on Spark {option} is of use with {mine} only",
            "add --stream, or leave it out",
            *("watermark", "checkpoint", "trigger", "until_done", "metrics_port", "late", "learn"),
        ),
    ),
    "Spark": (
        _of("ACEP-S072", NOT_WITH, "leave it out: it changes no result", "merge"),
        _of("ACEP-S072", NOT_WITH, "leave it out: on Spark events are always put in order", "sort"),
        _of("ACEP-S072", NOT_WITH, "write Parquet first, or leave out --spark", *NOT_ON_SPARK),
        _of(
            "ACEP-S072",
            NOT_WITH,
            "leave it out: rows left out are counted; with --stream, --late FOLDER has them",
            "rejects",
        ),
        _of(
            "ACEP-S072",
            NOT_WITH,
            "leave it out: a batch is put in order, and a stream leaves late events out",
            "on_late",
        ),
        _of("ACEP-S072", NOT_WITH, "leave it out: what --learn learns becomes a new version of --history", "save"),
        _of(
            "ACEP-S072",
            NOT_WITH,
            "leave it out: with --learn a stream saves as soon as there is something new",
            "save_every",
        ),
        _of("ACEP-S072", NOT_WITH, ALONE, "start", "learn_log", "report", "page", "shed", "expand", "sequence", "idle"),
        _of("ACEP-S072", NOT_WITH, FINAL, "emit", "changelog"),
        _of("ACEP-S072", NOT_WITH, "leave out the rows that take events back, or --spark", "op"),
        _of("ACEP-S072", NOT_WITH, "leave it out: on Spark one watermark is that of all sources", "source"),
        _of("ACEP-S072", NOT_WITH, "leave it out: workers write files", "flush"),
        _of("ACEP-S072", NOT_WITH, f"{CHOOSE}, or leave out --spark", *_outputs_but(*THREE)),
    ),
    "stream on Spark": (
        _of("ACEP-S072", NOT_WITH, "a stream is written as it comes", "limit"),
        _of("ACEP-S072", NOT_WITH, "a stream is written as Parquet", "format"),
        _of("ACEP-S072", NOT_WITH, "count the rows that were written, or those of --output points", "output:count"),
    ),
    "trigger": (_of("ACEP-S072", "{mine} does not go with {option}", "leave one of them out", "until_done"),),
    # --- budgets and pages ----------------------------------------------------------------------------------------
    "no budget": (
        _of(
            "ACEP-U040",
            "{option} is about a load budget, and there is none",
            "say how much may be done: --budget '20%', '5000 steps/event', '200 runs' or '2 ms/batch'",
            *_names(ExpandedBudgetOptions, LearningOptions, ReportOptions),
        ),
    ),
    "nothing learned": (
        _of(
            "ACEP-U049",
            "{option} is about what a run learns, and this one does not",
            "add --learn, or leave it out",
            *("save", "save_every", "learn_log"),
        ),
    ),
    "nothing expanded": (
        _of(
            "ACEP-U054",
            "{option} says how far {mine} goes, and nothing is expanded",
            "add --expand, or leave it out",
            "whole_bundles",
        ),
    ),
    "page of a set": (
        _of(
            "ACEP-U152",
            "--output with --queries does not go with {mine}",
            "leave it out: the page shows matches",
            *_outputs_but("matches"),
        ),
    ),
    "page of live input": (
        _of("ACEP-U152", "{option} with live input does not go with {mine}", "leave one of them out", "stamp"),
    ),
}
"""What is refused, by what a run is."""


def asked_for(context: typer.Context) -> dict[str, str]:
    """What a command was asked for: how each option that was given is spelled, by its name, and with some values."""
    given = given_options(context)
    for name in ("output", "on_late"):
        if name in given and isinstance(value := context.params[name], str):
            given[f"{name}:{value}"] = f"{given[name]} {value}"
    return given


def refuse(asked: Mapping[str, str], kinds: Mapping[str, str]) -> None:
    """Refuse what does not go with kinds of runs.

    Parameters
    ----------
    asked : mapping of str to str
        See ``asked_for``.
    kinds : mapping of str to str
        What the run is, each with what says so.

    Raises
    ------
    UsageError
        With the code of the first option that does not go with it.
    """
    refusals = [(refusal, mine) for kind, mine in kinds.items() for refusal in REFUSED[kind]]
    for name, option in asked.items():
        for refusal, mine in refusals:
            if refusal.is_about(name):
                raise refusal.error(option, mine)


def check_queries(context: typer.Context, folder: Path | None) -> None:
    """Refuse what does not go with a folder of queries, or is of use with one only.

    Raises
    ------
    UsageError
        ``ACEP-U064``: both are named; ``ACEP-U180``: there are more arguments than the query.
    """
    if context.args:
        raise UsageError(
            f"there is an argument behind the query: {context.args[0]!r:.60}",
            code="ACEP-U180",
            hint="the query is one argument, in quotes; acep check takes events by --input FILE, acep explain none",
        )
    refuse(asked_for(context), {"no set" if folder is None else "set": "--queries"})


def not_with_rules(option: str, hint: str) -> UsageError:
    """The error that something does not go with rules yet (``ACEP-U064``)."""
    return UsageError(NOT_YET.format(option=option, mine=RULES), code="ACEP-U064", hint=hint)
