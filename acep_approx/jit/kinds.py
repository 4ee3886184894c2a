"""The kinds of arguments that a kernel is compiled for: told from values, and from what it is annotated with."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np


def kind_of(value: Any) -> str:
    """Tell all of an argument that machine code depends on.

    Examples
    --------
    >>> kind_of((np.zeros(3), 7, None))
    'tuple(d1,int,None)'
    """
    if isinstance(value, np.ndarray):
        has = value.flags.c_contiguous, value.flags.writeable, value.flags.aligned
        return f"{value.dtype.char}{value.ndim}{'' if all(has) else has}"
    if isinstance(value, tuple):
        cls = type(value)
        name = "tuple" if cls is tuple else f"{cls.__module__}.{cls.__qualname__}"
        return f"{name}({','.join(map(kind_of, value))})"
    if isinstance(value, np.generic):
        return "int" if value.dtype == np.int64 else "float" if value.dtype == np.float64 else value.dtype.char
    return "None" if value is None else type(value).__name__


def like(value: Any) -> Any:
    """A value of the same kind that holds nothing."""
    if isinstance(value, np.ndarray):
        empty = np.empty((0,) * value.ndim, value.dtype)
        if not value.flags.c_contiguous:
            empty = np.empty((4,) * value.ndim, value.dtype)[(slice(None, None, 2),) * value.ndim]
        empty.flags.writeable = value.flags.writeable
        return empty
    if isinstance(value, tuple):
        return tuple.__new__(type(value), map(like, value))
    return value


def annotated(function: Callable[..., Any]) -> list[tuple[Any, ...]]:
    """Arguments of all kinds that a kernel is annotated with: where None is one, with it and without."""
    hints = get_type_hints(function)
    hints.pop("return", None)
    return list(product(*map(_some, hints.values())))


def _some(hint: Any) -> Iterator[Any]:
    if isinstance(hint, UnionType):
        for one in get_args(hint):
            yield from _some(one)
    elif hint in (int, float, bool):
        yield hint()
    elif hint in (None, type(None)):
        yield None
    elif get_origin(hint) is np.ndarray:
        yield np.empty(0, get_args(get_args(hint)[1])[0])
    elif isinstance(hint, type) and issubclass(hint, np.generic):
        yield hint()
    else:
        for fields in product(*map(_some, get_type_hints(hint).values())):
            yield tuple.__new__(hint, fields)
