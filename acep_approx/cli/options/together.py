"""What does not go together in a command: one table, by what a run is and what else is asked of it.

A pair that nobody refuses here works. Kinds of output, and what happens to late events, stand beside the options:
``output:count`` is ``--output count``, ``on_late:skip`` is ``--on-late skip``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path

import typer

from acep_approx.arguments import LATENESS
from acep_approx.cli.options.groups import given_options
from acep_approx.cli.options.input import HOW_WRITTEN, NOT_ON_SPARK
from acep_approx.cli.options.matching import BudgetOptions, ExpandedBudgetOptions, LearningOptions, ReportOptions
from acep_approx.cli.options.output import ResultKind
from acep_approx.cli.options.programs import RULES_ONLY
from acep_approx.errors import UsageError


@dataclass(frozen=True)
class Refusals:
    """What does not go with a kind of run.

    Attributes
    ----------
    code : str
    words : str
        The error, with ``{option}``, and ``{mine}`` for what says that a run is of this kind.
    hints : mapping of str to str
        What to do, by the names of options, and by ``option:value``.
    but : frozenset of str
        Where there are any: all options but these are refused, too.
    hint : str
        What to do about these.
    """

    code: str
    words: str
    hints: Mapping[str, str] = field(default_factory=dict)
    but: frozenset[str] = frozenset()
    hint: str = ""

    def hint_for(self, name: str) -> str | None:
        """What to do about an option, or a value of one; None: it goes."""
        is_other = bool(self.but) and ":" not in name and name not in self.but
        return self.hints.get(name, self.hint if is_other else None)


NOT_WITH = "{option} does not go with {mine}"
NOT_YET = "{option} and {mine} do not go together yet"
OF_USE_WITH = "{option} is of use with {mine} only"
RULES = "active rules"
"""What says that there are rules."""


def _each(hint: str, *options: str) -> dict[str, str]:
    return dict.fromkeys(options, hint)


def _outputs_but(hint: str, *kinds: str) -> dict[str, str]:
    return {f"output:{kind}": hint for kind in ResultKind if kind not in kinds}


COMMON = frozenset(
    (
        *("query", "inputs", "open_end", "file", "output", "format", "page", "quiet", "log", "metrics_port", "flush"),
        *("time", "key", "type", "unit", "input_format", *HOW_WRITTEN),
        *("sort", "on_malformed", "rejects", "on_late", "late", "follow", "until_idle"),
        *("kafka_option", "schema"),
    )
)
"""What goes with every program."""
SPENDING = tuple(
    one.name for group in (BudgetOptions, LearningOptions) for one in fields(group) if one.name != "horizon"
)
"""How much is done, and how: of one query, of many, and of rules."""
REPORTS = tuple(one.name for one in fields(ReportOptions))
OF_SPARK = ("spark", "master", "shards", "stream", "trigger", "until_done", "checkpoint", "id")
"""How programs of all kinds are run on Spark."""
OF_SETS = ("queries", "strict", "bind", "reorder", "stamp", "limit", "key_idle", "start", *REPORTS)
WITH_SETS = (*OF_SETS, *LATENESS, *SPENDING, "horizon")
OF_ONE_TUNING = ("most_steps", "spark", "master")
_LASTING = ("checkpoint_every", "finish")
CHECKPOINTS = ("checkpoint", *_LASTING)
OF_BUDGETS = [one.name for group in (ExpandedBudgetOptions, LearningOptions, ReportOptions) for one in fields(group)]
OF_BUDGETS.append("shed_rules")
THREE = ("matches", "points", "count")
KEPT = ("matches", "points", "partial")
CHOOSE = f"choose {', '.join(THREE)}"
ONE_OF_THEM = "leave one of them out"
ALONE = "leave it out, or leave out --spark"

REFUSED: dict[str, Refusals] = {
    # --- programs -------------------------------------------------------------------------------------------------
    "set": Refusals(
        "ACEP-U064",
        NOT_YET,
        _outputs_but(CHOOSE, *THREE),
        but=COMMON.union(WITH_SETS, CHECKPOINTS, OF_SPARK),
        hint="leave it out, or run the query by itself: acep run QUERY",
    ),
    "set on Spark": Refusals(
        "ACEP-S072",
        NOT_WITH,
        {
            "stamp": "give events a time, such as that of their arrival",
            **_each("leave it out: on Spark a checkpoint is written with each micro-batch", *_LASTING),
        },
    ),
    "set here": Refusals("ACEP-U064", NOT_YET, _each("leave it out: events of one time keep their order", "id")),
    "no set": Refusals("ACEP-U064", OF_USE_WITH, _each("add --queries FOLDER", "strict", "reorder", "stamp")),
    "training of a set": Refusals(
        "ACEP-U064",
        NOT_YET,
        _each(
            "leave it out, or learn from one query: acep train QUERY PAST",
            *("errors", "within", "more", "new_version", "spark", "master", "id"),
        ),
    ),
    "tuning of a set": Refusals(
        "ACEP-U064", NOT_YET, _each("leave it out, or tune one query: acep tune QUERY PAST", *OF_ONE_TUNING, "table")
    ),
    "no set to tune": Refusals("ACEP-U064", OF_USE_WITH, _each("add --queries FOLDER", "one", "strict")),
    "tuning of rules": Refusals(
        "ACEP-U064", NOT_YET, _each("leave it out", *OF_ONE_TUNING, "errors", "within", "output", "one")
    ),
    "no set to learn from": Refusals("ACEP-U064", OF_USE_WITH, _each("add --queries FOLDER", "strict")),
    "replay of a set": Refusals(
        "ACEP-U064",
        NOT_YET,
        _each("leave it out, or ask about a query by itself: acep replay QUERY", "errors", "within", "merge", "table"),
    ),
    "replay of rules": Refusals("ACEP-U064", NOT_YET, _each("leave it out", "errors", "within", "merge", "output")),
    "replay of a query": Refusals("ACEP-U064", OF_USE_WITH, {"whose": "add --queries FOLDER, or name a file of rules"}),
    "rules": Refusals(
        "ACEP-U064",
        NOT_YET,
        _outputs_but("leave it out: FOR EACH POINT gives the points of a rule", "matches"),
        but=COMMON.union(RULES_ONLY, ("bind",), SPENDING, REPORTS, OF_SPARK, ("watermark",)),
        hint="leave it out",
    ),
    "rules on Spark": Refusals(
        "ACEP-S072",
        NOT_WITH,
        {
            "store": "leave it out: tables lie in the state of the job, --mirror jdbc:... keeps a copy of them, and "
            "--changes FOLDER has what is written",
            "limit": "leave it out",
            **_each("leave it out: on Spark a checkpoint is written with each micro-batch", *_LASTING),
        },
    ),
    "rules here": Refusals(
        "ACEP-U064", NOT_YET, _each("leave it out, or wait for late events from Python", "id", "watermark")
    ),
    "rules without a store": Refusals(
        "ACEP-U064", OF_USE_WITH, _each("add --store FILE", "checkpoint_every", "finish")
    ),
    "no rules": Refusals(
        "ACEP-U064",
        "{option} is of use with a file of rules only, and this is a query",
        _each("leave it out; a file of rules begins with TABLE or RULE", *RULES_ONLY),
    ),
    # --- what happens to events -----------------------------------------------------------------------------------
    "late events": Refusals(
        "ACEP-U055",
        NOT_WITH,
        _outputs_but(f"{CHOOSE}, or leave out {{mine}}", *THREE)
        | {
            "sort": "leave it out: events are put in order of time as far as they may be late",
            "on_late:refuse": "leave it out: late events are counted, and --late FILE writes them",
        },
    ),
    "late events of a query": Refusals(
        "ACEP-U055",
        NOT_WITH,
        {
            "key_idle": f"{ONE_OF_THEM}; keys are dropped of events in order: see --sort, and --reorder with --queries",
            **_each("leave it out: it reads the events once more, in order; see --sort", "expand", "whole_bundles"),
            "shed": "leave it out; with --sort in the place of {mine} what is shed can be written down",
        },
    ),
    "watermark of a set": Refusals("ACEP-U064", NOT_WITH, {"reorder": f"{ONE_OF_THEM}: they are the same"}),
    "changelog": Refusals(
        "ACEP-U055", NOT_WITH, {"output:count": f"{ONE_OF_THEM}: what counts is what remains at the end"}
    ),
    "events in order": Refusals(
        "ACEP-S071",
        "{option} is of use with --spark only, or where events may be late or change",
        {"id": "add --spark, --watermark, --emit or --op; or show a column of the events: --bind COLUMN"},
    ),
    "open end": Refusals(
        "ACEP-U151",
        NOT_WITH,
        {
            "finish": f"{ONE_OF_THEM}: --finish says that no more events will come",
            "emit": "leave --emit out: it puts results out before their window has closed",
            "expand": ONE_OF_THEM,
            "spark": "leave one of them out: a job on Spark takes its input for the whole stream",
        },
    ),
    # --- live input -----------------------------------------------------------------------------------------------
    "whole input": Refusals(
        "ACEP-U139",
        OF_USE_WITH,
        _each(
            "add --follow, with a file or a folder; --until-idle '0 s' ends it when all has been read",
            *("until_idle", "checkpoint", "checkpoint_every"),
        )
        | _each("name a topic: kafka://BROKER:9092/TOPIC", "kafka_option", "schema"),
    ),
    "live input": Refusals(
        "ACEP-U138",
        NOT_WITH,
        {
            "sort": "leave it out; of events that are late by so much at most: --watermark '10 s'",
            "expand": "leave it out: it reads the events twice",
        },
    ),
    "file that grows": Refusals(
        "ACEP-U138", NOT_WITH, {"spark": "leave --follow out: --stream matches a folder that gets new files"}
    ),
    "no topic": Refusals(
        "ACEP-U139",
        "{option} is of use with a topic of Kafka only",
        _each("leave it out, or name kafka://...", "kafka_option", "schema"),
    ),
    "compressed": Refusals("ACEP-U138", NOT_WITH, {"output:compressed": "choose matches, points or partial"}),
    "no checkpoint": Refusals(
        "ACEP-U139", OF_USE_WITH, _each("add --checkpoint FOLDER", "checkpoint_every", "finish")
    ),
    "rules on live input": Refusals(
        "ACEP-U138", NOT_WITH, {"checkpoint": "say --store FILE: it keeps all that they need to go on"}
    ),
    "checkpoint": Refusals(
        "ACEP-U138",
        NOT_WITH,
        _outputs_but(f"choose {', '.join(KEPT)}, or leave --checkpoint out", *KEPT)
        | {
            "limit": ONE_OF_THEM,
            "shed": f"{ONE_OF_THEM}: what was shed before a stop is not kept",
            "on_late:skip": "say --watermark '0 s': late events are left out, too",
        },
    ),
    # --- Spark ----------------------------------------------------------------------------------------------------
    "no cluster": Refusals("ACEP-S037", OF_USE_WITH, {"master": "add --spark, or leave it out"}),
    "here": Refusals(
        "ACEP-S071",
        OF_USE_WITH,
        _each(
            "add --spark, or leave it out",
            *("shards", "stream", "trigger", "at_once", "until_done", "mirror"),
        ),
    ),
    "batch on Spark": Refusals(
        "ACEP-S071",
        "on Spark {option} is of use with {mine} only",
        _each(
            "add --stream, or leave it out",
            *("watermark", "checkpoint", "trigger", "at_once", "until_done", "metrics_port", "late", "learn"),
            *("reorder", "emit", "changelog", "mirror"),
        ),
    ),
    "Spark": Refusals(
        "ACEP-S072",
        NOT_WITH,
        _each(ALONE, "start", "learn_log", "report", "page", "shed", "expand", "sequence", "idle")
        | _each("say --within in its place", "horizon")
        | _each("write Parquet first, or leave out --spark", *NOT_ON_SPARK)
        | _outputs_but("choose matches, points, bundles or count, or leave out --spark", *THREE, "bundles")
        | {
            "merge": "leave it out: it changes no result",
            "sort": "leave it out: on Spark events are always put in order",
            "rejects": "leave it out: rows left out are counted; with --stream, --late FOLDER has them",
            "on_late": "leave it out: a batch is put in order, and a stream leaves late events out",
            "save": "leave it out: what --learn learns becomes a new version of --history",
            "save_every": "leave it out: with --learn a stream saves as soon as there is something new",
            "op": "leave out the rows that take events back, or --spark",
            "source": "leave it out: on Spark one watermark is that of all sources",
            "flush": "leave it out: workers write files",
        },
    ),
    "stream on Spark": Refusals(
        "ACEP-S072",
        NOT_WITH,
        {
            "limit": "a stream is written as it comes",
            "format": "a stream is written as Parquet, and to a topic as JSON",
        },
    ),
    "no stream on Spark": Refusals(
        "ACEP-S071",
        "{option} takes {mine} as a stream only",
        {"spark": "add --stream; with --until-done it ends when all that is there is done"},
    ),
    "topic on Spark": Refusals("ACEP-S072", NOT_WITH, {"follow": "leave it out: --stream follows topics"}),
    "files on Spark": Refusals(
        "ACEP-S072", "{option} is of use with a topic of Kafka only", {"schema": "leave it out: files have columns"}
    ),
    "trigger": Refusals("ACEP-S072", "{mine} does not go with {option}", {"until_done": ONE_OF_THEM}),
    # --- budgets and pages ----------------------------------------------------------------------------------------
    "no budget": Refusals(
        "ACEP-U040",
        "{option} is about a load budget, and there is none",
        _each("say how much may be done: --budget '20%', '5000 steps/event', '200 runs' or '2 ms/batch'", *OF_BUDGETS),
    ),
    "words in a picture": Refusals(
        "ACEP-U064",
        NOT_WITH,
        {
            "budget": "leave one of them out: words say how it is shared",
            "spark": "leave one of them out: words say how the work is split",
        },
    ),
    "nothing learned": Refusals(
        "ACEP-U049",
        "{option} is about what a run learns, and this one does not",
        _each("add --learn, or leave it out", "save", "save_every", "learn_log"),
    ),
    "nothing expanded": Refusals(
        "ACEP-U054",
        "{option} says how far {mine} goes, and nothing is expanded",
        {"whole_bundles": "add --expand, or leave it out"},
    ),
    "page of a set": Refusals(
        "ACEP-U152",
        "--output with --queries does not go with {mine}",
        _outputs_but("leave it out: the page shows matches", "matches"),
    ),
    "page of live input": Refusals(
        "ACEP-U152", "{option} with live input does not go with {mine}", {"stamp": ONE_OF_THEM}
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
    for name, option in asked.items():
        for kind, mine in kinds.items():
            refused = REFUSED[kind]
            hint = refused.hint_for(name)
            if hint is not None:
                words = refused.words.format(option=option, mine=mine)
                raise UsageError(words, code=refused.code, hint=hint.format(mine=mine))


def check_queries(context: typer.Context, folder: Path | None, with_: str = "set", without: str = "no set") -> None:
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
            hint="the query is one argument, in quotes; acep explain takes no events",
        )
    refuse(asked_for(context), {without if folder is None else with_: "--queries"})


def not_with_rules(option: str, hint: str) -> UsageError:
    """The error that something does not go with rules yet (``ACEP-U064``)."""
    return UsageError(NOT_YET.format(option=option, mine=RULES), code="ACEP-U064", hint=hint)
