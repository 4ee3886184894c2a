"""The functions of the query language, in plain Python: values in, a value out. The package never imports it."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime
from typing import Any


def call(name: str, values: list[Any]) -> Any:
    """What a function gives; NULL in, NULL out, ``coalesce`` and CASE excepted."""
    if name == "coalesce":
        known = [value for value in values if value is not None]
        return widened(known[0] if known else None, values)
    if name == "CASE":
        conditions, results = values[:-1:2], [*values[1::2], values[-1]]
        found = [result for condition, result in zip(conditions, results, strict=False) if condition is True]
        return widened((found or results[-1:])[0], results)
    if name == "IN":
        return is_in(*values)
    if None in values:
        return None
    text = values[0]
    match name:
        case "LIKE":
            return re.fullmatch(like(values[1]), text, re.DOTALL) is not None
        case "ILIKE":
            return re.fullmatch(like(values[1]), text, re.DOTALL | re.IGNORECASE) is not None
        case "starts_with":
            return text.startswith(values[1])
        case "ends_with":
            return text.endswith(values[1])
        case "contains":
            return values[1] in text
        case "matches":
            return re.search(values[1], text) is not None
        case "lower":
            return text.lower()
        case "upper":
            return text.upper()
        case "trim":
            return text.strip()
        case "length":
            return len(text)
        case "substr":
            _, start, *length = values
            kept = [sign for place, sign in enumerate(text, 1) if place >= start]
            return "".join(kept[: length[0]] if length else kept)
        case "to_time":
            time = datetime.fromisoformat(text)
            return time if time.tzinfo is None else time.astimezone(UTC).replace(tzinfo=None)
        case "year" | "month" | "day" | "hour" | "minute" | "second":
            return getattr(text, name)
        case "weekday":
            return text.isoweekday()
        case "least" | "greatest":
            return widened(min(values) if name == "least" else max(values), values)
    return number(name, *values)


def number(name: str, x: Any, digits: int = 0) -> Any:
    """Functions of numbers; whole ones stay whole."""
    if name == "abs":
        return abs(x)
    if not isinstance(x, float) or math.isinf(x):
        return x
    if name == "floor":
        return float(math.floor(x))
    if name == "ceil":
        return float(math.ceil(x))
    return math.copysign(math.floor(abs(x) * 10**digits + 0.5) / 10**digits, x)


def is_in(item: Any, several: list[Any] | None) -> bool | None:
    """Whether a value is in a list: as comparing it with each of its values, joined by OR."""
    if several is None:
        return None
    tests = [None if item is None or one is None or one != one else item == one for one in several]
    return True if True in tests else None if None in tests else False


def widened(value: Any, values: list[Any]) -> Any:
    """A whole number beside floats is one."""
    return float(value) if type(value) is int and any(isinstance(one, float) for one in values) else value


def like(pattern: str) -> str:
    """A pattern of LIKE as a regular expression."""
    signs = re.findall(r"\\.|.", pattern, re.DOTALL)
    return "".join({"%": ".*", "_": "."}.get(sign, re.escape(sign[-1])) for sign in signs)
