"""What the explorer shows, as plain data: ``results.explorer`` makes it of a run, and it knows nothing of runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from acep_approx.arrays import Ints


@dataclass(frozen=True)
class Condition:
    """A condition as text, and the (variable, attribute) that it reads of single events."""

    text: str
    reads: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class QueryShown:
    """A query, or a rule, and what it found.

    Attributes
    ----------
    name : str
        Empty where there is one query only.
    text : str
    variables : tuple of (str, str)
        In the order of the pattern, each with its type (empty: any). Results in CEL have none: their events show types.
    conditions : tuple of Condition
    uses : tuple of (str, str)
        The (variable, attribute) that it reads anywhere; without variable: of any event.
    window : str
        In words; empty: none.
    span : int
        The window in ticks; 0 where it counts events, or there is none.
    found : mapping of int to int
        Matches by number of errors.
    ticks, errors : numpy.ndarray of int64
        Of the match points, in order of time.
    listed : int
        Of the matches, how many the page holds.
    columns : tuple of str
        Names of the values that its matches have beside their events.
    """

    name: str
    text: str
    variables: tuple[tuple[str, str], ...]
    conditions: tuple[Condition, ...]
    window: str
    span: int
    found: Mapping[int, int]
    ticks: Ints = field(repr=False)
    errors: Ints = field(repr=False)
    listed: int = 0
    columns: tuple[str, ...] = ()
    uses: tuple[tuple[str, str], ...] = ()

    @property
    def total(self) -> int:
        """All its matches."""
        return sum(self.found.values())


@dataclass(frozen=True)
class EventShown:
    """An event: its time, its type, and its values in the order of ``Explored.attributes``."""

    tick: int
    type: str | None
    values: tuple[str | None, ...]


@dataclass(frozen=True)
class MatchShown:
    """A match.

    Attributes
    ----------
    query : int
        Number of its query.
    errors : int
    start, end : int
        Ticks.
    key : tuple of str or None
    missing : tuple of str
        Variables.
    events : tuple of (str, int)
        Variables, each with the row of its event, in order of time.
    hidden : int
        Events that are not listed.
    values : tuple of str or None
        By ``QueryShown.columns``.
    """

    query: int
    errors: int
    start: int
    end: int
    key: tuple[str | None, ...]
    missing: tuple[str, ...] = ()
    events: tuple[tuple[str, int], ...] = ()
    hidden: int = 0
    values: tuple[str | None, ...] = ()


@dataclass(frozen=True)
class NearShown:
    """A place where a match nearly was, and why it was not.

    Attributes
    ----------
    query : int
    start, tick : int
        Of the first and of the last event of the furthest partial match.
    key : tuple of str or None
    errors : int
    events : tuple of (str, int)
        As of a match.
    why : str
        ``window closed``, ``stream ended``, ``broken`` or ``refused``; ``shed``: it is a match, and a budget shed it.
    awaited : tuple of str
        Variables that could have come next; of what was shed those that are missing.
    headline : str
    lines, helps : tuple of str
        The answer in words, and what would have made a match.
    ask : str
        The command that asks for it again.
    """

    query: int
    start: int
    tick: int
    key: tuple[str | None, ...]
    errors: int
    events: tuple[tuple[str, int], ...]
    why: str
    awaited: tuple[str, ...]
    headline: str
    lines: tuple[str, ...]
    helps: tuple[str, ...]
    ask: str

    @property
    def is_shed(self) -> bool:
        """Whether it is a match that a budget shed."""
        return self.why == "shed"


@dataclass(frozen=True)
class Explored:
    """A run as the explorer shows it.

    Attributes
    ----------
    title : str
    explanation : sequence of str
        A few sentences; may be empty.
    facts : sequence of (str, str)
        What was read, in words.
    tiles : sequence of (str, str)
        Numbers to know, each with what it is.
    is_time : bool
        Whether ticks are microseconds since 1970.
    keys, attributes : tuple of str
        Names of the equivalence attributes, and of the values of events; the first ``used`` of these are those that
        the query names.
    queries : sequence of QueryShown
    matches : sequence of MatchShown
    events : mapping of int to EventShown
        By row.
    near : sequence of NearShown
    near_note : str
        How many of how many there are, or why there are none.
    ask : str
        How to ask for any other place; empty: it cannot be asked.
    again : sequence of (str, str)
        How the page is made again: where, and the command or the call.
    again_notes : sequence of str
        What else is to be known for that.
    notes : sequence of str
        What is left out.
    """

    title: str
    queries: Sequence[QueryShown]
    matches: Sequence[MatchShown] = ()
    events: Mapping[int, EventShown] = field(default_factory=dict)
    near: Sequence[NearShown] = ()
    near_note: str = ""
    explanation: Sequence[str] = ()
    facts: Sequence[tuple[str, str]] = ()
    tiles: Sequence[tuple[str, str]] = ()
    is_time: bool = False
    keys: tuple[str, ...] = ()
    attributes: tuple[str, ...] = ()
    used: int = 0
    ask: str = ""
    again: Sequence[tuple[str, str]] = ()
    again_notes: Sequence[str] = ()
    notes: Sequence[str] = ()

    @property
    def total(self) -> int:
        """All matches of all queries."""
        return sum(query.total for query in self.queries)
