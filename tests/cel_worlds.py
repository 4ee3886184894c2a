"""Random queries in CEL, as text, and random streams with ties, intervals and NULLs; the same seed gives the same.

Base streams are A and B, with the attributes g (text) and x, y (whole numbers). Every text is parsed and resolved
without an error.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from acep_approx import QueryError
from acep_approx.query.cel.names import completed, resolved
from acep_approx.query.cel.parser import parse_cel
from acep_approx.query.cel.printer import to_cel
from acep_approx.query.cel.syntax import Algebra, CelQuery, Filter, Fold, Next, Select
from acep_approx.query.syntax import Attribute, Binary, Expression
from tests.naive_cel import Event

BASE: dict[str, str] = {"g": "text", "x": "number", "y": "number"}
"""The attributes of A and B, and what they are."""
SCHEMAS: dict[str, tuple[str, ...]] = {"A": tuple(BASE), "B": tuple(BASE)}
Kinds = dict[str, str]
"""Attributes in their order, each a number or a text."""


@dataclass(frozen=True)
class CelWorld:
    """Queries that may read what those before them publish, and events of the base streams."""

    texts: tuple[str, ...]
    events: Mapping[str, Sequence[Event]]
    table: pa.Table = field(repr=False)

    @property
    def text(self) -> str:
        """The only query, or the last one."""
        return self.texts[-1]

    def queries(self) -> list[CelQuery]:
        """The queries, resolved."""
        schemas = dict(SCHEMAS)
        found = []
        for text in self.texts:
            query = parse_cel(text)
            found.append(resolved(query, schemas))
            schemas |= completed(query, schemas)
        return found


def world_of(text: str, seed: int, *, intervals: bool) -> CelWorld:
    """One query and a random stream."""
    return _with_events(random.Random(seed), (text,), intervals=intervals)


def cel_world(seed: int, *, depth: int | None = None, subqueries: bool = True, intervals: bool = True) -> CelWorld:
    """One query and a stream.

    ``depth`` (1 to 4; random) is how deep its operators are nested. Without ``subqueries`` it is left-associated: what
    one automaton can run. Without ``intervals`` every event begins when it ends.
    """
    random_ = random.Random(seed)
    writer = _Writer(random_, {name: dict(BASE) for name in SCHEMAS}, subqueries=subqueries)
    text, _ = writer.query(depth or random_.choice((1, 2, 2, 3, 3, 4, 4)), "Out" if random_.random() < 0.3 else None)
    return _with_events(random_, (text,), intervals=intervals)


def keyed(world: CelWorld, seed: int = 0, share: float = 1.0) -> CelWorld | None:
    """The same query, every operator of which asks for one ``g`` too; None where there is none any more.

    ``share``: so many operators, random ones, ask for it; then it may be another attribute.
    """
    random_, query = random.Random(seed), parse_cel(world.text)
    name = "g" if share == 1 else random_.choice(tuple(BASE))
    equal = Binary("=", Attribute("$2", None, name), Attribute("$1", None, name))

    def asks(condition: Expression | None) -> Expression:
        if condition is not None and random_.random() >= share:
            return condition
        return equal if condition is None else Binary("AND", condition, equal)

    def changed(node: Algebra) -> Any:
        match node:
            case Filter() | Select():
                return replace(node, source=changed(node.source))
            case Next():
                return replace(node, left=changed(node.left), condition=asks(node.condition))
            case Fold():
                return replace(node, left=changed(node.left), filter=asks(node.filter))
        return node

    text = to_cel(replace(query, select=changed(query.select)))
    try:
        resolved(parse_cel(text), SCHEMAS)
    except QueryError:
        return None
    return replace(world, texts=(*world.texts[:-1], text))


def cel_set(seed: int, *, queries: int = 5, intervals: bool = True) -> CelWorld:
    """Several queries; each publishes its results, mostly, and reads base streams and those published before it."""
    random_ = random.Random(seed)
    known: dict[str, Kinds] = {name: dict(BASE) for name in SCHEMAS}
    texts = []
    for number in range(queries):
        writer = _Writer(random_, known, subqueries=True, prefix=f"S{number}_")
        name = f"P{number}" if random_.random() < 0.8 else None
        text, kinds = writer.query(random_.choice((1, 1, 2, 2, 3)), name)
        texts.append(text)
        written = {one: found for one, found in writer.published.items() if f"PUBLISH {one}" in text}
        known |= written  # some subqueries were dropped
        if name is not None:
            known[name] = kinds
    return _with_events(random_, tuple(texts), intervals=intervals)


# --- events -------------------------------------------------------------------------------------------------------


def _with_events(random_: random.Random, texts: tuple[str, ...], *, intervals: bool) -> CelWorld:
    nulls, long = random_.choice((0.0, 0.15)), intervals and random_.random() < 0.5
    times, values = random_.choice((8, 16, 40)), random_.choice((2, 4))
    events: dict[str, list[Event]] = {name: [] for name in SCHEMAS}
    rows = []
    for tick in sorted(random_.randrange(times) for _ in range(random_.randrange(8, 24))):
        name = random_.choice("AB")
        start = tick - (random_.choice((0, 0, 1, 2)) if long else 0)
        row = {
            one: None if random_.random() < nulls else _value(random_, kind, values) for one, kind in BASE.items()
        }
        events[name].append(Event(start, tick, row))
        rows.append({"ts": tick, "start": start, "type": name, **row})
    fields = [("ts", pa.int64()), ("start", pa.int64()), ("type", pa.string())]
    fields += [(one, pa.string() if kind == "text" else pa.int64()) for one, kind in BASE.items()]
    return CelWorld(texts, events, pa.Table.from_pylist(rows, schema=pa.schema(fields)))


def _value(random_: random.Random, kind: str, values: int) -> str | int:
    return random_.choice("pq") if kind == "text" else random_.randrange(values)


# --- queries ------------------------------------------------------------------------------------------------------


class _Writer:
    """Writes one query.

    Parameters
    ----------
    random_ : random.Random
    known : dict
        The streams that it can read, with their attributes.
    subqueries : bool
        Whether right operands may be composite, and subqueries may publish.
    prefix : str
        What the names of streams begin with that its subqueries publish.
    """

    def __init__(
        self, random_: random.Random, known: Mapping[str, Kinds], *, subqueries: bool, prefix: str = "S"
    ) -> None:
        self.random, self.known, self.subqueries, self.prefix = random_, known, subqueries, prefix
        self.published: dict[str, Kinds] = {}
        self.new = 0

    def query(self, depth: int, publish: str | None) -> tuple[str, Kinds]:
        text, kinds = self.node(depth)
        items, kinds = self.items(kinds)
        clauses = [f"FROM {text}"] if items == "*" and self.chance(0.3) else [f"SELECT {items}", f"FROM {text}"]
        within = f"WITHIN {self.random.choice((2, 5, 10, 20))}" if self.chance(0.35) else ""
        tail = [within, f"PUBLISH {publish}" if publish else ""]
        return "\n".join(one for one in [*clauses, *tail[:: self.random.choice((1, -1))]] if one), kinds

    def node(self, depth: int) -> tuple[str, Kinds]:
        """A stream of at most so many operators one in the other."""
        kinds = ("filter", "next", "next", "next", "fold", "fold", "select") if depth > 0 else ("stream",)
        kind = self.random.choice(kinds)
        made: tuple[str, Kinds] = getattr(self, f"_{kind}")(depth - 1)
        return made

    def _stream(self, _: int) -> tuple[str, Kinds]:
        name = self.random.choice(list(self.known))
        return name, dict(self.known[name])

    def _filter(self, depth: int) -> tuple[str, Kinds]:
        text, kinds = self.node(depth)
        condition = self.condition({"$1": kinds}, duration=True)
        return f"FILTER{{{condition}}}({text})", kinds

    def _next(self, depth: int) -> tuple[str, Kinds]:
        left, of_left = self.tidied(*self.node(depth))
        right, of_right = self.right(depth)
        common = set(of_left) & set(of_right)
        kinds = {f"{name}_1" if common else name: kind for name, kind in of_left.items()}
        if set(kinds) & set(of_right):  # what is left twice is refused
            return left, of_left
        condition = self.condition({"$1": of_left, "$2": of_right}) if self.chance(0.7) else ""
        braces = f"{{{condition}}}" if condition or self.chance(0.5) else ""
        return f"{left} NEXT{braces} {right}", {**kinds, **of_right}

    def _fold(self, depth: int) -> tuple[str, Kinds]:
        left, of_left, right, of_right = self.fold_inputs(depth)
        sides = {"$1": of_left, "$2": of_right, "$": of_left}
        named = [name for name in of_left if name not in of_right and of_left[name] == "number"]
        aggregates = {}
        for name in [*named, f"n{depth}"]:
            if name not in of_right and self.chance(0.5 if name in named else 0.2):
                aggregates[name] = self.number(sides, deep=1)
        again = set(of_right) | set(aggregates)
        kinds = {f"{name}_1" if name in again else name: kind for name, kind in of_left.items()}
        if len(kinds) < len(of_left) or set(kinds) & again:  # what is left twice is refused
            return left, of_left
        parts = [self.condition(sides) if self.chance(0.6) else "" for _ in range(2)]
        written = ", ".join(f"{value} AS {name}" for name, value in aggregates.items())
        text = f"{left} FOLD{{{parts[0]}, {parts[1]}, {written}}} {right}"
        return text, {**kinds, **of_right, **dict.fromkeys(aggregates, "number")}

    def fold_inputs(self, depth: int) -> tuple[str, Kinds, str, Kinds]:
        """Two streams of which the first has all attributes of the second."""
        left, of_left = self.tidied(*self.node(depth))
        right, of_right = self.right(depth)
        if not set(of_right) <= set(of_left):
            shared = [name for name in of_right if of_left.get(name) == of_right[name]]
            if self.subqueries and shared:
                right, of_right = f"(SELECT {', '.join(shared)} FROM {right})", {one: of_right[one] for one in shared}
            else:
                left, right = self.random.choice(("A", "B")), self.random.choice(("A", "B"))
                of_left, of_right = dict(BASE), dict(BASE)
        if any(of_left[name] != kind for name, kind in of_right.items()):
            left, of_left, right, of_right = "A", dict(BASE), "B", dict(BASE)
        if self.chance(0.5):
            name = self.fresh("c", of_left)
            left, of_left = f"(SELECT *, {self.random.randrange(2)} AS {name} FROM {left})", {**of_left, name: "number"}
        return left, of_left, right, of_right

    def tidied(self, text: str, kinds: Kinds) -> tuple[str, Kinds]:
        """A stream, mostly without attributes that an operator before renamed: twice would be refused."""
        renamed = {name: kind for name, kind in kinds.items() if name.endswith("_1")}
        if not renamed or self.chance(0.1):
            return text, kinds
        kept = {name: kind for name, kind in kinds.items() if name not in renamed}
        items = list(kept)
        for name, kind in renamed.items():
            if self.chance(0.3):
                new = self.fresh("r", kinds)
                items.append(f"{name} AS {new}")
                kept[new] = kind
        return (f"(SELECT {', '.join(items)} FROM {text})", kept) if items else (text, kinds)

    def right(self, depth: int) -> tuple[str, Kinds]:
        """A right operand."""
        if self.subqueries and depth > 0 and self.chance(0.35):
            text, kinds = self.node(depth - 1)
            return (f"({text})" if " NEXT" in text or " FOLD" in text else text), kinds
        name, kinds = self._stream(0)
        return (f"FILTER{{{self.condition({'$1': kinds})}}}({name})" if self.chance(0.25) else name), kinds

    def _select(self, depth: int) -> tuple[str, Kinds]:
        text, kinds = self.node(depth)
        items, kinds = self.items(kinds)
        publish = ""
        if self.subqueries and self.chance(0.25):
            name = f"{self.prefix}{len(self.published)}"
            self.published[name], publish = kinds, f" PUBLISH {name}"  # others may read it
        return f"(SELECT {items} FROM {text}{publish})", kinds

    def items(self, kinds: Kinds) -> tuple[str, Kinds]:
        """What stands behind SELECT, and the attributes that it gives."""
        if self.chance(0.4):
            return "*", kinds
        made: dict[str, tuple[str, str]] = {}
        for name, kind in self.random.sample(list(kinds.items()), min(len(kinds), self.random.randrange(1, 5))):
            if self.chance(0.3):
                new = self.fresh("r", kinds)
                made[new] = f"{name} AS {new}", kind
            else:
                made[name] = name, kind
        if self.chance(0.3):
            new = self.fresh("r", kinds)
            made[new] = f"{self.number({'$1': kinds}, deep=1, plain=True)} AS {new}", "number"
        return ", ".join(text for text, _ in made.values()), {name: kind for name, (_, kind) in made.items()}

    # --- expressions --------------------------------------------------------------------------------------------

    def condition(self, sides: Mapping[str, Kinds], *, duration: bool = False, deep: int = 2) -> str:
        choice = self.random.random()
        if deep > 0 and choice < 0.3:
            parts = [self.condition(sides, duration=duration, deep=deep - 1) for _ in range(2)]
            return f"({parts[0]} {self.random.choice(('AND', 'OR'))} {parts[1]})"
        if deep > 0 and choice < 0.36:
            return f"NOT ({self.condition(sides, duration=duration, deep=deep - 1)})"
        if duration and choice < 0.6:
            sign, unit = self.random.choice(("<=", "<", ">=", ">", "!=")), self.random.choice(("", " ticks"))
            return f"DUR {sign} {self.random.randrange(8)}{unit}"
        return self.test(sides)

    def test(self, sides: Mapping[str, Kinds]) -> str:
        texts = self.attributes(sides, "text")
        choice = self.random.random()
        if texts and choice < 0.35:
            other = self.random.choice([*texts, "'p'", "'q'"])
            return f"{self.random.choice(texts)} {self.random.choice(('=', '=', '!='))} {other}"
        number = self.random.choice(self.attributes(sides, "number") or ["1"])
        if choice < 0.38:
            return f"{number} IS {self.random.choice(('', 'NOT ', 'NOT '))}NULL"
        if choice < 0.45:
            return f"{number} {self.random.choice(('', 'NOT '))}IN (0, 2)"
        if choice < 0.52:
            return f"{number} BETWEEN {self.random.randrange(2)} AND {self.number(sides)}"
        return f"{number} {self.sign()} {self.number(sides, deep=1)}"

    def number(self, sides: Mapping[str, Kinds], *, deep: int = 0, plain: bool = False) -> str:
        """A number; ``plain``: without decorators."""
        found = self.attributes(sides, "number", plain=plain)
        if deep > 0 and self.chance(0.4):
            sign = self.random.choice(("+", "-", "*"))
            return f"{self.number(sides, plain=plain)} {sign} {self.random.randrange(3)}"
        return self.random.choice(found) if found and self.chance(0.8) else str(self.random.randrange(4))

    def attributes(self, sides: Mapping[str, Kinds], kind: str, *, plain: bool = False) -> list[str]:
        """Attributes with decorators, which are left out, at times, where only one side has the name."""
        found = []
        for side, kinds in sides.items():
            for name in (name for name, one in kinds.items() if one == kind):
                alone = len(sides) == 1 or ("$" not in sides and sum(name in other for other in sides.values()) == 1)
                found.append(name if plain or (alone and self.chance(0.5)) else f"{side}.{name}")
        return found

    def fresh(self, letter: str, kinds: Kinds) -> str:
        """A name that no attribute has."""
        self.new += 1
        while f"{letter}{self.new}" in kinds:
            self.new += 1
        return f"{letter}{self.new}"

    def sign(self) -> str:
        return self.random.choice(("=", "<=", "<=", ">=", ">=", "<", ">", "!="))

    def chance(self, share: float) -> bool:
        return self.random.random() < share
