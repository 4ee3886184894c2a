"""Random conditions across events, for ``rich_worlds``: plain functions over a way to pick one of some options."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from acep_approx.query.syntax import (
    Aggregate,
    Apply,
    Attribute,
    Between,
    Binary,
    Constant,
    Expression,
    In,
    IsNull,
    Lasting,
    Unary,
)

Pick = Callable[[Sequence[Any]], Any]
NUMBERS = ("x", "x", "y", "x", "y", "ts")
TEXTS = ("s", "s", "type", "g")
COMPARISONS = ("<", "<=", ">", ">=", "=", "!=")
KNOWN_NUMBERS = (1, 2, 0, 3, 1.5, None)
KNOWN_TEXTS = ("u", "v", "", None)
PATTERNS = ("u", "%", "_", "U%", "%v%", "A", "_%", "a", "\\%", "")


@dataclass(frozen=True)
class Names:
    """The variables that a condition may name: those of one event (None: the current event), and Kleene variables.

    ``functions`` says whether it may call some, and ask for count(DISTINCT ...) and stddev.
    """

    single: tuple[str | None, ...]
    kleene: tuple[str, ...]
    functions: bool = False


def condition(pick: Pick, names: Names) -> Expression:
    """A conjunct: no AND at its top."""
    match pick((*["test"] * 7, "or", "or", "and", "not", "mostly", "mostly", "mostly")):
        case "or":
            return Binary("OR", test(pick, names), test(pick, names))
        case "and":
            return Binary("OR", test(pick, names), Binary("AND", test(pick, names), test(pick, names)))
        case "not":
            return Unary("NOT", test(pick, names))
        case "mostly":  # holds for most events, so that there are matches
            return Binary(pick(("!=", "<=", ">=")), number(pick, names), number(pick, names))
    return test(pick, names)


def test(pick: Pick, names: Names) -> Expression:
    """A comparison, or a test for a range, a list or NULL."""
    if names.functions and pick((True, False, False)):
        return called(pick, names)
    match pick((*["comparison"] * 6, "text", "text", "between", "in", "text in", "null")):
        case "text":
            return Binary(pick(COMPARISONS), text(pick, names), pick((text, text, some_text))(pick, names))
        case "between":
            high = pick((shifted, some_number))(pick, names)
            return Between(shifted(pick, names), number(pick, names), high, pick((False, True)))
        case "in":
            values = tuple(Constant(pick(KNOWN_NUMBERS)) for _ in range(pick((2, 1, 3))))
            return In(shifted(pick, names), values, pick((False, True)))
        case "text in":
            values = tuple(Constant(pick(KNOWN_TEXTS)) for _ in range(pick((2, 1))))
            return In(text(pick, names), values, pick((False, True)))
        case "null":
            return IsNull(pick((number, text))(pick, names), pick((False, True)))
    return comparison(pick, names)


def comparison(pick: Pick, names: Names) -> Expression:
    """Two numbers; of a Kleene variable often each event and those before it."""
    if names.kleene and pick((True, False)):
        return looking_back(pick, names)
    if pick((False, False, True)):
        return Binary(pick(COMPARISONS), shifted(pick, names), some_number(pick, names))
    return Binary(pick(COMPARISONS), number(pick, names), shifted(pick, names))


def called(pick: Pick, names: Names) -> Expression:
    """A condition with a function of a text, or of numbers of any events."""
    match pick(("like", "like", "affix", "texts", "length", "numbers", "numbers", "numbers")):
        case "like":
            found = Apply(pick(("LIKE", "ILIKE")), (text_of_event(pick, names), Constant(pick(PATTERNS))))
            return pick((found, Unary("NOT", found)))
        case "affix":
            name = pick(("starts_with", "ends_with", "contains", "matches"))
            return Apply(name, (text_of_event(pick, names), Constant(pick(("", "u", "v", "A")))))
        case "texts":
            return Binary(pick(COMPARISONS), changed(pick, names), pick((changed, changed, some_text))(pick, names))
        case "length":
            length = Apply("length", (text_of_event(pick, names),))
            return Binary(pick(COMPARISONS), length, number(pick, names))
    return Binary(pick(COMPARISONS), computed(pick, names), shifted(pick, names))


def changed(pick: Pick, names: Names) -> Expression:
    """A text made of others."""
    match pick(("one", "one", "substr", "coalesce", "extreme", "case")):
        case "substr":
            given = (Constant(pick((1, 2))), *pick(((), (Constant(1),))))
            return Apply("substr", (text_of_event(pick, names), *given))
        case "coalesce":
            return Apply("coalesce", (text(pick, names), pick((text, some_text))(pick, names)))
        case "case":
            return Apply("CASE", (comparison(pick, names), text(pick, names), pick((text, some_text))(pick, names)))
        case "extreme":
            return Apply(pick(("least", "greatest")), (text(pick, names), text(pick, names)))
    return Apply(pick(("lower", "upper", "trim")), (text_of_event(pick, names),))


def text_of_event(pick: Pick, names: Names) -> Expression:
    """A text of one event, which may have an index; functions of texts are of nothing else."""
    variable = pick((*names.single, *names.kleene))
    if variable in names.single:
        return Attribute(variable, None, pick(TEXTS))
    return Attribute(variable, pick((None, "current", "previous", "first", "last", *numbers_of(names))), pick(TEXTS))


def numbers_of(names: Names) -> tuple[int, ...]:
    """Events of a Kleene variable by their numbers; only with functions, so that a seed stays what it was."""
    return (2, 3, 2) if names.functions else ()


def computed(pick: Pick, names: Names) -> Expression:
    """A number that a function gives."""
    match pick(("one", "one", "digits", "extreme", "coalesce", "several", "case", "case")):
        case "case":
            pairs = [
                part
                for _ in range(pick((1, 2)))
                for part in (comparison(pick, names), pick((number, shifted, some_number))(pick, names))
            ]
            return Apply("CASE", (*pairs, pick((number, some_number))(pick, names)))
        case "digits":
            return Apply("round", (shifted(pick, names), Constant(pick((0, 1)))))
        case "extreme":
            return Apply(pick(("least", "greatest")), (number(pick, names), shifted(pick, names)))
        case "coalesce":
            return Apply("coalesce", (shifted(pick, names), pick((number, some_number))(pick, names)))
        case "several":
            name = pick(("least", "greatest", "coalesce"))
            return Apply(name, (number(pick, names), some_number(pick, names), number(pick, names)))
    return Apply(pick(("abs", "round", "floor", "ceil")), (shifted(pick, names),))


def looking_back(pick: Pick, names: Names) -> Expression:
    """``a[i]`` against the events of its variable before it."""
    variable = pick(names.kleene)
    own = Attribute(variable, pick(("current", None)), pick(NUMBERS))
    match pick(("event", "event", "aggregate", "aggregate", "count")):
        case "event":
            before: Expression = Attribute(variable, "previous", pick(NUMBERS))
        case "aggregate":
            newer = ("count distinct", "stddev") if names.functions else ()
            function = pick(("avg", "sum", "min", "max", "first", "last", "count", *newer))
            before = Aggregate(function, variable, pick(NUMBERS), prior=True)
        case "count":
            before = Aggregate("count", variable, None, prior=True)
    if pick((False, False, True)):
        before = Binary(pick("+-*"), before, number(pick, names))
    return Binary(pick(COMPARISONS), own, before)


def shifted(pick: Pick, names: Names) -> Expression:
    """A number, or two joined by an operator."""
    match pick((*["number"] * 5, "joined", "constant", "minus")):
        case "joined":
            return Binary(pick("+-*/%"), number(pick, names), number(pick, names))
        case "constant":
            return Binary(pick("+-*/%"), number(pick, names), Constant(pick((1, 2, 0, 0.5))))
        case "minus":
            return Unary("-", number(pick, names))
    return number(pick, names)


def number(pick: Pick, names: Names) -> Expression:
    """A number of one event, or over several."""
    variable = pick((*names.single, *names.kleene))
    if variable in names.single:
        return Attribute(variable, None, pick(NUMBERS))
    match pick(("plain", "index", "index", "aggregate", "count")):
        case "index":
            index = pick(("last", "first", "current", "previous", *numbers_of(names)))
            return Attribute(variable, index, pick(NUMBERS))
        case "aggregate":
            function = pick(("sum", "min", "max", "avg", "first", "last"))
            found = Aggregate(function, variable, pick(NUMBERS), prior=False)
            return replace(found, upto=pick((None, 2, 3))) if names.functions else found
        case "count":
            if names.functions and pick((True, False)):
                function, of = pick((("count distinct", ("x", "y", "s")), ("stddev", ("x", "y"))))
                return Aggregate(function, variable, pick(of), prior=False)
            return Aggregate("count", variable, pick((None, "x", "s")), prior=False)
    return Attribute(variable, None, pick(NUMBERS))


def text(pick: Pick, names: Names) -> Expression:
    """A text of one event, or over several."""
    variable = pick((*names.single, *names.kleene))
    if variable in names.single:
        return Attribute(variable, None, pick(TEXTS))
    if pick((False, False, True)):
        return Aggregate(pick(("min", "max", "first", "last")), variable, pick(TEXTS), prior=False)
    return Attribute(variable, pick((None, "current", "previous", "first", "last", *numbers_of(names))), pick(TEXTS))


def some_number(pick: Pick, names: Names) -> Expression:
    """A constant number or NULL, whatever the names."""
    return Constant(pick(KNOWN_NUMBERS))


def some_text(pick: Pick, names: Names) -> Expression:
    """A constant text or NULL, whatever the names."""
    return Constant(pick(KNOWN_TEXTS))


# --- times and durations: of streams that have the columns TIMES -----------------------------------------------------

TIMES = ("at", "due")
LENGTHS = (Lasting(1, "s"), Lasting(0, "s"), Lasting(1.5, "s"), Lasting(2, "s"), Lasting(1, "us"), Lasting(1, "h"))


def about_times(pick: Pick, names: Names) -> Expression:
    """A comparison of durations or times, or of how often one duration fits into another."""
    match pick(("lengths", "lengths", "lengths", "moments", "ratio", "between", "null", "part", "part")):
        case "part":
            variable = pick((*names.single, *names.kleene))
            index = None if variable in names.single else pick((None, "current", "previous", "first", "last"))
            of: Expression = Attribute(variable, index, pick(TIMES))
            of = Binary("-", of, some_length(pick, names)) if pick((False, False, True)) else of
            name, value = pick((("second", 2), ("second", 59), ("minute", 0), ("hour", 1), ("day", 1), ("weekday", 1)))
            return Binary(pick(COMPARISONS), Apply(name, (of,)), Constant(value))
        case "moments":
            return Binary(pick(COMPARISONS), later(pick, names), pick((moment, later))(pick, names))
        case "ratio":
            ratio = Binary("/", duration(pick, names), duration(pick, names))
            return Binary(pick(COMPARISONS), ratio, Constant(pick((0, 1, 0.5))))
        case "between":
            return Between(duration(pick, names), pick(LENGTHS), duration(pick, names), pick((False, True)))
        case "null":
            return IsNull(pick((duration, later))(pick, names), pick((False, True)))
    return Binary(pick(COMPARISONS), duration(pick, names), pick((duration, some_length))(pick, names))


def duration(pick: Pick, names: Names) -> Expression:
    """How much time lies between two times, or what is computed of that."""
    gap = Binary("-", moment(pick, names), moment(pick, names))
    match pick(("gap", "gap", "gap", "sum", "times", "part", "minus")):
        case "sum":
            return Binary(pick("+-"), gap, some_length(pick, names))
        case "times":
            sides = gap, Constant(pick((2, 0.5, -1, 0)))
            return Binary("*", *pick((sides, sides[::-1])))
        case "part":
            return Binary("/", gap, Constant(pick((2, 0.5, 3, 0))))
        case "minus":
            return Unary("-", gap)
    return gap


def later(pick: Pick, names: Names) -> Expression:
    """A time, and some time after or before it."""
    return Binary(pick("+-"), moment(pick, names), some_length(pick, names))


def moment(pick: Pick, names: Names) -> Expression:
    """A time of one event, or the first or last of several."""
    variable = pick((*names.single, *names.kleene))
    if variable in names.single:
        return Attribute(variable, None, pick(TIMES))
    if pick((False, False, True)):
        return Aggregate(pick(("min", "max", "first", "last")), variable, pick(TIMES), prior=False)
    return Attribute(variable, pick((None, "current", "previous", "first", "last")), pick(TIMES))


def some_length(pick: Pick, names: Names) -> Expression:
    """A length of time, whatever the names."""
    return pick(LENGTHS)
