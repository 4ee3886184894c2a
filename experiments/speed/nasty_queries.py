"""Query texts that are short or plain to write and dear to compile: made by hand, and random ones.

The limits of the language must hold them all: each is compiled to tables of a stated size, or refused.
"""

from __future__ import annotations

import random
from itertools import pairwise

LETTERS = "abcdefgh"


def _names(count: int, type_: str = "A", suffix: str = "") -> str:
    return ", ".join(f"{type_}{suffix} v{i}" for i in range(count))


def _rising(count: int) -> str:
    return " AND ".join(f"v{b}.x > v{a}.x" for a, b in pairwise(range(count)))


def _guards(stages: int) -> str:
    """Each stage is passed by either of two negations: there are 2 ** stages sets of them."""
    some = (f"((~(N n{i}), A? a{i}) | (~(M m{i}), A? b{i}))" for i in range(stages))
    conditions = " AND ".join(f"n{i}.x > {i} AND m{i}.x > {i}" for i in range(stages))
    return f"PATTERN SEQ(A a, {', '.join(some)}, B z) WHERE {conditions} WITHIN 5"


HARD = {
    "(a?){400}a": "(a?){400}a WITHIN 5",
    "(a?){180}a": "(a?){180}a WITHIN 50",
    "(a{0,30}){30}b": "(a{0,30}){30}b WITHIN 50",
    "a{1,999}b": "a{1,999}b WITHIN 2000",
    "(a*b*)* 60 times": "(a*b*)*" * 60 + "c WITHIN 50",
    "optional letters": "(a?b?c?d?){40}a WITHIN 50",
    "letters in doubt": "(a|b)*a(a|b){14} WITHIN 50",
    "and errors": "(a|b)*a(a|b){12} WITHIN 50 ERRORS 5",
    "200 alternatives": "|".join(["aaaaa"] * 200) + " WITHIN 50 ERRORS 4",
    "100,000 alternatives": "|".join(["aaaaa"] * 100_000) + " WITHIN 50",
    "A{1000} ERRORS 999": "PATTERN A{1000} a WITHIN 2000 ERRORS 999",
    "A{500} ERRORS 10": "PATTERN A{500} a WITHIN 2000 ERRORS 10",
    "A{1000} ERRORS 18": "PATTERN A{1000} a WITHIN 2000 ERRORS 18",
    "100 steps ERRORS 3": f"PATTERN SEQ({_names(100)}) WITHIN 2000 ERRORS 3",
    "1,000 steps": f"PATTERN SEQ({_names(1000)}) WITHIN 5",
    "1,000 rising": f"PATTERN SEQ({_names(1000)}) WHERE {_rising(1000)} WITHIN 50",
    "1,000 steps ERRORS 3": f"PATTERN SEQ({_names(1000)}) WITHIN 5 ERRORS 3",
    "60 rising ERRORS 3": f"PATTERN SEQ({_names(60)}) WHERE {_rising(60)} WITHIN 50 ERRORS 3",
    "first with last": f"PATTERN SEQ({_names(400)}) WHERE "
    + " AND ".join(f"v{399 - i}.x > v{i}.x" for i in range(200))
    + " WITHIN 50 ERRORS 1",
    "100 optional": f"PATTERN SEQ({_names(100, suffix='?')}, B b) WHERE "
    + " AND ".join(f"b.x > v{i}.x" for i in range(100))
    + " WITHIN 5",
    "11 optional": f"PATTERN SEQ({_names(11, suffix='?')}, B b) WHERE "
    + " AND ".join(f"b.x > v{i}.x" for i in range(11))
    + " WITHIN 5",
    "50 alternatives": "PATTERN SEQ("
    + " | ".join(f"(A v{i}, A w{i})" for i in range(50)).join("()")
    + ", B z) WHERE "
    + " AND ".join(f"z.x > v{i}.x" for i in range(50))
    + " WITHIN 5",
    "120 alternatives of 5": "PATTERN SEQ("
    + " | ".join("(" + ", ".join(f"A v{i}_{j}" for j in range(5)) + ")" for i in range(120)).join("()")
    + ", B z) WHERE "
    + " AND ".join(f"z.x > v{i}_0.x" for i in range(120))
    + " WITHIN 5",
    "every variable listed": f"PATTERN SEQ({_names(900)}) WHERE skip_till_next_match("
    + ", ".join(f"v{i}" for i in range(900))
    + ") WITHIN 5",
    "900 negations": "PATTERN SEQ(A a, " + ", ".join(f"~(A n{i})" for i in range(900)) + ", B b) WITHIN 5",
    "8 stages of negations": _guards(8),
    "20 stages of negations": _guards(20),
    "60 letters": f"PATTERN SEQ({', '.join(f'ANY v{i}' for i in range(14))}) WHERE "
    + " AND ".join(f"v{i}.x > {i}" for i in range(14))
    + " WITHIN 50 ERRORS 3",
    "IN of 10,000": f"PATTERN SEQ(A a, B b) WHERE a.x IN ({', '.join(map(str, range(10_000)))}) WITHIN 5",
    "IN of 20,000": f"PATTERN SEQ(A a, B b) WHERE a.x IN ({', '.join(map(str, range(20_000)))}) WITHIN 5",
    "IN of 10,000 texts": f"PATTERN A a WHERE a.type IN ({', '.join(repr(str(i)) for i in range(10_000))}) WITHIN 5",
    "200,000 NOT": "PATTERN A a WHERE " + "NOT " * 200_000 + "a.x > 1 WITHIN 5",
    "99 NOT": "PATTERN A a WHERE " + "NOT " * 97 + "a.x > 1 WITHIN 5",
    "5,000 conditions": "PATTERN A a WHERE " + " AND ".join(f"a.x > {i}" for i in range(5000)) + " WITHIN 5",
    "3,000 across": "PATTERN SEQ(A a, B b) WHERE "
    + " AND ".join(f"a.x > b.x - {i}" for i in range(3000))
    + " WITHIN 5",
    "3,000 outputs": "PATTERN A a WITHIN 5 RETURN " + ", ".join(f"a.x + {i} AS c{i}" for i in range(3000)),
    "1,000 aggregates": "PATTERN SEQ(A+ a[], B b) WITHIN 50 RETURN "
    + ", ".join(f"sum(a[].x) + {i} AS c{i}" for i in range(1000)),
    "40 aggregates": "PATTERN SEQ(A+ a[], B b) WHERE "
    + " AND ".join(f"{f}(a[].x) > b.x - {i}" for i in range(10) for f in ("sum", "min", "max", "avg"))
    + " WITHIN 50",
    "a long text": f"PATTERN A a WHERE a.type = '{'x' * 900_000}' WITHIN 5",
    "500,000 brackets": "PATTERN " + "(" * 500_000,
    "300,000 comments": "--\n" * 300_000 + "PATTERN A a WITHIN 5",
}
"""Name -> text; what is worst of each kind, and what must still pass."""


def nasty_query(dice: random.Random) -> str:
    """A random text that loves nesting, counts, long lists, alternatives, NOT, and ERRORS near the length."""
    maker = dice.choice((_letters_query, _pattern_query, _pattern_query, _list_query))
    return maker(dice)


def _size(dice: random.Random, usual: int, most: int) -> int:
    """Mostly small, now and then as large as can be."""
    if dice.random() < 0.97:
        return dice.randint(1, usual)
    return min(int(dice.paretovariate(0.6) * usual), most)


def _quantifier(dice: random.Random) -> str:
    low = _size(dice, 3, 300)
    return dice.choice(("", "", "", "?", "*", "+", f"{{{low}}}", f"{{{low},}}", f"{{0,{low}}}", f"{{1,{low + 2}}}"))


def _letters(dice: random.Random, depth: int) -> str:
    pieces = []
    for _ in range(dice.randint(1, 2)):
        if depth and dice.random() < 0.5:
            inner = dice.choice(("", "|")).join(_letters(dice, depth - 1) for _ in range(dice.randint(1, 3)))
            pieces.append(f"({inner}){_quantifier(dice)}")
        else:
            pieces.append(dice.choice(LETTERS) + _quantifier(dice))
    return "".join(pieces)


def _letters_query(dice: random.Random) -> str:
    text = _letters(dice, dice.choice((0, 0, 1, 1, 2, 3))) * _size(dice, 2, 200) + dice.choice(LETTERS)
    depth = _size(dice, 2, 150)
    return f"{'(' * depth}{text}{')' * depth} WITHIN {dice.randint(0, 50)} {_errors(dice, text.count('a') + 1)}"


def _errors(dice: random.Random, length: int) -> str:
    errors = dice.choice((0, 0, 1, 2, length // 2, length - 1, length - 1))
    return f"ERRORS {max(errors, 0)}" if errors else ""


class _Pattern:
    """A pattern of variables that are numbered as they are made."""

    def __init__(self, dice: random.Random) -> None:
        self.dice = dice
        self.variables: list[str] = []
        self.kleene: list[str] = []
        self.negated: list[str] = []

    def part(self, depth: int) -> str:
        dice = self.dice
        if depth and dice.random() < 0.5:
            joined = dice.choice((", ", ", ", " | ")).join(self.part(depth - 1) for _ in range(dice.randint(1, 4)))
            return f"({joined})"
        kind = dice.random()
        types = dice.choice((1, 3, 3, 70))
        type_ = dice.choice(("ANY", *(f"T{dice.randrange(types)}" for _ in range(9))))
        name = f"v{len(self.variables) + len(self.kleene) + len(self.negated)}"
        if kind < 0.1:
            self.negated.append(name)
            return f"~({type_} {name})"
        if kind < 0.3:
            self.kleene.append(name)
            return f"{type_}{dice.choice('+*')} {name}[]"
        self.variables.append(name)
        return f"{type_}{dice.choice(('', '', '', '?'))} {name}"

    def condition(self) -> str:
        dice = self.dice
        left = dice.choice(self.variables)
        right = dice.choice([*self.variables, *self.negated]) if self.kleene == [] else dice.choice(self.variables)
        kinds = [
            f"{left}.x > {dice.randint(0, 9)}",
            f"{right}.x > {left}.x - {dice.randint(0, 9)}",
            f"{right}.x + {left}.x * {left}.y > {dice.randint(0, 9)}",
            "NOT " * _size(dice, 2, 300) + f"{left}.x > 1",
            f"{left}.x IN ({', '.join(str(dice.randint(-9, 999)) for _ in range(_size(dice, 3, 3000)))})",
            " OR ".join(f"{left}.y = {dice.randint(0, 9)}" for _ in range(_size(dice, 2, 200))),
        ]
        if self.kleene:
            many = dice.choice(self.kleene)
            function = dice.choice(("sum", "min", "max", "avg", "count", "first", "last"))
            kinds += [f"{function}({many}[].x) > {left}.x", f"{many}[i].x > {many}[i-1].x", f"{many}.x > {left}.x"]
        return dice.choice(kinds)


def _pattern_query(dice: random.Random) -> str:
    made = _Pattern(dice)
    parts = [made.part(dice.choice((0, 0, 0, 1, 2))) for _ in range(_size(dice, 2, 120))]
    made.variables.append("last")
    text = f"PATTERN SEQ({', '.join([*parts, 'T0 last'])})"
    conditions = [made.condition() for _ in range(dice.choice((0, 0, 1, _size(dice, 3, 200))))]
    strategy = dice.choice(("", "", "", "skip_till_next_match", "strict_contiguity"))
    if conditions or strategy:
        joined = " AND ".join(conditions)
        text += f" WHERE {strategy} {{ {joined} }}" if strategy else f" WHERE {joined}"
    text += f" WITHIN {dice.choice(('5', '20 events', '5'))} {_errors(dice, len(made.variables))}"
    if dice.random() < 0.1:
        text += " NON OVERLAP"
    if dice.random() < 0.2:
        outputs = (f"{dice.choice(made.variables)}.x + {i} AS c{i}" for i in range(_size(dice, 2, 1000)))
        text += f" RETURN {', '.join(outputs)}"
    return text


def _list_query(dice: random.Random) -> str:
    """Few parts, and one of them long."""
    size = _size(dice, 4, 40_000)
    return dice.choice(
        (
            f"PATTERN A{{{size}}} a WITHIN 5 ERRORS {max(size - dice.randint(1, 3), 0)}",
            f"PATTERN A{{{dice.randint(1, size)},{size}}} a WITHIN 5 {_errors(dice, size)}",
            f"(a{{{min(size, 40)}}}){{{_size(dice, 3, 40)}}} WITHIN 9 {_errors(dice, min(size, 40))}",
            f"(a?b?){{{min(size, 300)}}}a WITHIN 9",
            f"PATTERN A a WHERE a.x IN ({', '.join(map(str, range(size)))}) WITHIN 5",
            f"PATTERN A a WHERE {' AND '.join(f'a.x != {i}' for i in range(min(size, 3000)))} WITHIN 5",
            f"PATTERN A a WHERE {'-' * size} a.x > 1 WITHIN 5",
            f"PATTERN SEQ({_names(min(size, 1100))}) WITHIN 5 {_errors(dice, min(size, 12))}",
            f"PATTERN SEQ({_names(min(size, 300))}) WHERE {_rising(min(size, 300)) or 'v0.x > 1'} WITHIN 5 ERRORS 1",
            f"PATTERN SEQ({_names(min(size, 40), suffix='?')}, B b) WHERE "
            + " AND ".join(f"b.x > v{i}.x" for i in range(min(size, 40)))
            + " WITHIN 5",
            f"PATTERN SEQ({', '.join(f'T{i} v{i}' for i in range(min(size, 90)))}) WITHIN 5 {_errors(dice, size)}",
            f"PATTERN {'(' * min(size, 200)}A a{')' * min(size, 200)} WITHIN 5",
            _guards(min(size, 20)),
        )
    )
