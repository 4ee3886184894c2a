"""From the texts of queries to templates, without parsing each: texts that differ in constants are read once.

The text without its numbers and strings, its *outline*, is looked up. The first text of an outline is parsed, and the
tree says which of its numbers and strings are constants of conditions, or the window: these are parameters. All others
(types, quantifiers, ERRORS, indexes) belong to the outline.

What is asked of a text is asked of PATTERN and CEL alike.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import isfinite
from typing import Any, NamedTuple

from acep_approx.planning.cel import plans_of_parts
from acep_approx.planning.planner import Plan, plan
from acep_approx.query.cel.parser import is_cel, parse_cel
from acep_approx.query.cel.printer import to_cel
from acep_approx.query.cel.syntax import DURATION, CelQuery, changed, conditions, parameters_in, with_constants
from acep_approx.query.parameters import refuse_parameters, refuse_those, uses_of, with_values
from acep_approx.query.parser import parse
from acep_approx.query.printer import to_text
from acep_approx.query.shape import conjuncts, replaced, walk
from acep_approx.query.syntax import Apply, Attribute, Constant, Expression, In, Parameter, QuerySyntax, Span, Window

Syntax = QuerySyntax | CelQuery


def tree_of(text: str) -> Syntax:
    """The tree of a text.

    Raises
    ------
    QueryError, LimitError
        As ``parse`` and ``parse_cel``.
    """
    return parse_cel(text) if is_cel(text) else parse(text)


def text_of(syntax: Syntax) -> str:
    """A text of which the tree can be made again."""
    return to_cel(syntax) if isinstance(syntax, CelQuery) else to_text(syntax)


def uses(syntax: Syntax) -> Counter[str]:
    """How often each parameter stands in a tree, in the order of the text."""
    if isinstance(syntax, CelQuery):
        return Counter(one.name for one in parameters_in(syntax))
    return uses_of(syntax)


def filled(syntax: Syntax, constants: Mapping[str, Any]) -> Syntax:
    """The tree with constants in the places of its parameters."""
    return with_constants(syntax, constants) if isinstance(syntax, CelQuery) else with_values(syntax, constants)


def plans_of(syntax: Syntax, mark: int) -> list[Plan]:
    """The plans of the automata that a query needs, its own last.

    Parameters
    ----------
    syntax : QuerySyntax or CelQuery
        Without parameters.
    mark : int
        Tells its hidden streams apart from those of other queries, if it is in CEL.

    Raises
    ------
    QueryError, UnsupportedError, LimitError
        The query is wrong.
    """
    return plans_of_parts(syntax, f".{mark}") if isinstance(syntax, CelQuery) else [plan(syntax)]


_TOKEN = re.compile(
    r"--[^\n]*|`(?:``|[^`])*`|'(?:''|[^'])*'|(?<![\w.])(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?(?![\w.])"
)
Value = int | float | str
_LARGEST = 2**63 - 1


class Read(NamedTuple):
    """A text as a template with values; ``syntax`` is the same tree for all texts that differ in these alone."""

    syntax: Syntax
    values: dict[str, Value]


@dataclass
class _Outline:
    """Texts that are alike but for numbers and strings: which of these are parameters, with their signs."""

    places: dict[int, int]
    window: int | None
    trees: dict[tuple[object, ...], Syntax] = field(default_factory=dict)


class Literals:
    """Reads texts; remembers the outlines that it has seen.

    Examples
    --------
    >>> known = Literals()
    >>> one, other = (known.read(f"PATTERN SEQ(A a, B b) WHERE b.x > {n} WITHIN 5") for n in (1, 7))
    >>> one.syntax is other.syntax, one.values, other.values
    (True, {'c0': 1, 'c1': 5}, {'c0': 7, 'c1': 5})
    """

    def __init__(self) -> None:
        self._outlines: dict[str, _Outline] = {}

    def read(self, text: str) -> Read:
        """A query as a template with values; the template of a text without constants has no parameters.

        Raises
        ------
        QueryError, LimitError
            As ``parse``; ``ACEP-Q085``: it asks for values.

        Complexity: O(text), and a parse where its outline, its other literals or the kinds of its constants are new.
        """
        spans = [m.span() for m in _TOKEN.finditer(text) if text[m.start()] != "`" and text[m.start()] != "-"]
        outline = _without(text, spans)
        known = self._outlines.get(outline)
        tree = None
        if known is None:
            tree = tree_of(text)
            if isinstance(tree, CelQuery):
                refuse_those(parameters_in(tree), tree)
            else:
                refuse_parameters(tree)
            known = self._outlines[outline] = _outline_of(tree, spans)
        found = {place: _value(text, spans[place], sign) for place, sign in known.places.items()}
        if not all(_is_plain(value, is_window=place == known.window) for place, value in found.items()):
            return Read(tree or tree_of(text), {})
        values = {f"c{place}": value for place, value in found.items()}
        kept = tuple(text[start:end] for place, (start, end) in enumerate(spans) if place not in known.places)
        kinds = tuple(type(value) for value in values.values())
        if (kept, kinds) not in known.trees:
            known.trees[kept, kinds] = _with_parameters(tree or tree_of(text), spans, known)
        return Read(known.trees[kept, kinds], values)


def _without(text: str, spans: list[Span]) -> str:
    parts, at = [], 0
    for start, end in spans:
        parts += [text[at:start], "\0" if text[start] == "'" else "\1"]
        at = end
    return "".join([*parts, text[at:]])


def _outline_of(tree: Syntax, spans: list[Span]) -> _Outline:
    number = {end: place for place, (_, end) in enumerate(spans)}
    places: dict[int, int] = {}
    for constant in _constants(tree):
        start, end = constant.span
        if end in number:
            places[number[end]] = -1 if start < spans[number[end]][0] else 1
    window = None
    if tree.window is not None and tree.window.unit != "events":  # what counts events is no parameter
        start, _ = tree.window.span
        window = next((place for place, (first, _) in enumerate(spans) if first == start), None)
    if window is not None:
        places[window] = 1
    return _Outline(dict(sorted(places.items())), window)


def _constants(tree: Syntax) -> list[Constant]:
    """Numbers and strings in conditions, not in those of how long results last; lists after IN, and arguments, stay."""
    if isinstance(tree, CelQuery):
        parts = [[*walk(part)] for condition in conditions(tree) for part in conjuncts(condition)]
        parts = [part for part in parts if not any(isinstance(n, Attribute) and n.name == DURATION for n in part)]
    else:
        parts = [[*walk(part)] for part in tree.predicates]
    nodes = [node for part in parts for node in part]
    listed = {id(value) for node in nodes if isinstance(node, In) for value in node.values}
    listed |= {id(value) for node in nodes if isinstance(node, Apply) for value in node.arguments}
    found = [node for node in nodes if isinstance(node, Constant) and id(node) not in listed]
    return [one for one in found if isinstance(one.value, int | float | str) and not isinstance(one.value, bool)]


def _value(text: str, span: Span, sign: int) -> Value:
    token = text[slice(*span)]
    if token[0] == "'":
        return token[1:-1].replace("''", "'")
    return sign * (int(token) if token.isdigit() else float(token))


def _is_plain(value: Value, *, is_window: bool) -> bool:
    """Whether a value needs no further check: whole numbers of 64 bits, fractions, strings; windows are whole."""
    if isinstance(value, str):
        return True
    return abs(value) <= _LARGEST if isinstance(value, int) else not is_window and isfinite(value)


def _with_parameters(tree: Syntax, spans: list[Span], outline: _Outline) -> Syntax:
    at = {spans[place][1]: place for place in outline.places if place != outline.window}

    def change(node: Expression) -> Expression | None:
        if isinstance(node, In):
            return replace(node, operand=replaced(node.operand, change))
        if isinstance(node, Constant) and node.span[1] in at and not isinstance(node.value, bool | None):
            return Parameter(f"c{at[node.span[1]]}", node.span)
        return None

    window: Window | None = tree.window
    if window is not None and outline.window is not None:
        window = replace(window, amount=0, parameter=Parameter(f"c{outline.window}", window.span))
    if isinstance(tree, CelQuery):
        return replace(tree, select=changed(tree.select, change), window=window)
    assert window is not None, "patterns have one"
    return replace(tree, predicates=tuple(replaced(one, change) for one in tree.predicates), window=window)
