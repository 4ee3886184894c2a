"""Lambdas that are called once, with symbols, to see what they compute: conditions and moves of `Afa`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from acep_approx.query.limits import refuse_deep_tree, refuse_many_nodes
from acep_approx.query.symbols import Events, Registers, Symbol, text_of
from acep_approx.query.syntax import Constant, Expression
from acep_approx.query.traces import Trace, plain, shown


def condition_of(call: Callable[..., Any], trace: Trace) -> Expression:
    """What a lambda says about event and registers.

    Parameters
    ----------
    call : callable
        Takes events and registers; or one of them, the events where there is one.
    trace : Trace
        What is known while it is called.

    Returns
    -------
    Expression
        The tree of its symbol, or TRUE or FALSE.

    Raises
    ------
    QueryError
        ACEP-Q070: it gives something else, or does what symbols cannot.

    Examples
    --------
    >>> from acep_approx.query import to_text
    >>> trace = Trace("WHEN of a -> b", "trades.py:12", True, "t", ("top",), {})
    >>> to_text(condition_of(lambda e, r: -e.change > 2 * r.top, trace))
    '-t.change > 2 * top'
    """
    found = _result(call, trace)
    if isinstance(found, Symbol):
        return _tree(found, trace)
    found = plain(found)
    if not isinstance(found, bool):
        raise trace.fault(f"the lambda gives {shown(found)}, not a condition", "give a comparison: lambda e: e.x < 0")
    if trace.symbols:
        seen, hint = text_of(trace.symbols[0]), "write .is_null() for `is None`; use what you look at in the condition"
        raise trace.fault(f"the lambda looks at {seen}, but gives {found} whatever that is", hint)
    return Constant(found)


def moves_of(call: Callable[..., Any], trace: Trace) -> dict[str, Expression]:
    """What a lambda gives to registers.

    Parameters
    ----------
    call : callable
        As for `condition_of`.
    trace : Trace
        What is known while it is called.

    Returns
    -------
    dict of str to Expression
        By name of the register; whether there is such a register is not checked.

    Raises
    ------
    QueryError
        ACEP-Q070: it gives no mapping to symbols and constants, or does what symbols cannot.
    """
    found = _result(call, trace)
    if not isinstance(found, Mapping):
        hint = 'give what registers become: lambda e, r: {"level": r.level + 1}'
        raise trace.fault(f"the lambda gives {shown(found)}, not a mapping of registers to values", hint)
    return {name: _tree(value, trace) for name, value in found.items()}


def place_of(call: Callable[..., Any]) -> str:
    """File and line of a function, ``trades.py:12``; its name, if it is not written in Python.

    Parameters
    ----------
    call : callable
        A function, or what wraps one.

    Returns
    -------
    str
        For a message.
    """
    inner: Any = call
    while isinstance(inner, partial):
        inner = inner.func
    inner = inspect.unwrap(inner)
    code = getattr(inner, "__code__", None) or getattr(type(inner).__call__, "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code else repr(call)


def _tree(value: object, trace: Trace) -> Expression:
    node = trace.node(value)
    refuse_many_nodes((node,), "")
    refuse_deep_tree(node, "")
    return node


def _result(call: Callable[..., Any], trace: Trace) -> Any:
    count = _parameters(call)
    if count not in (1, 2):
        hint = "write lambda e, r: with the event and the registers" + ("" if trace.has_event else ", or lambda r:")
        raise trace.fault("the lambda must take one or two parameters", hint)
    given = (Events(trace), Registers(trace))
    try:
        return call(*(given if count == 2 else given[:1] if trace.has_event else given[1:]))
    except TypeError as error:
        hint = "put what symbols cannot do into a function over columns: @afa.function(version=1, returns=float)"
        raise trace.fault(f"the lambda cannot be called with symbols, {error}", hint) from error


def _parameters(call: Callable[..., Any]) -> int:
    """How many values a function must be given: those with a default are its own business."""
    try:
        found = inspect.signature(call).parameters.values()
    except (TypeError, ValueError):
        return -1
    places = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(one.kind in places and one.default is inspect.Parameter.empty for one in found)
