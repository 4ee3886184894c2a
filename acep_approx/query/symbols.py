"""Symbols: what the lambdas of `Afa` get in the place of events and registers, so that they tell what they compute.

A lambda is called once, and traced: its conditions and moves are what it gives for symbols. Operators on these make the
tree of the expression; whatever would need a value is refused.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from functools import partial
from typing import Any, NoReturn

from acep_approx.errors import QueryError
from acep_approx.query.assemble import did_you_mean
from acep_approx.query.limits import refuse_deep_tree, refuse_many_nodes
from acep_approx.query.printer import to_text
from acep_approx.query.syntax import (
    Attribute,
    Between,
    Binary,
    Constant,
    Expression,
    FunctionCall,
    In,
    IsNull,
    RegisterValue,
    Unary,
    Unknown,
    UserFunction,
)


@dataclass(frozen=True)
class Trace:
    """What is known while a lambda is called with symbols.

    Parameters
    ----------
    what : str
        What the lambda is for: ``"WHEN of q0 -> q1"``.
    place : str
        Its file and line: ``"trades.py:12"``.
    has_event : bool
        Whether there is an event at hand.
    variable : str or None
        The name of the current event, where it has one.
    registers : tuple of str
        Names of all registers.
    functions : dict of str to UserFunction
        Those known before; those that the lambda calls are added.
    symbols : list of Unknown
        All that were made so far.
    """

    what: str
    place: str
    has_event: bool
    variable: str | None
    registers: tuple[str, ...]
    functions: dict[str, UserFunction]
    symbols: list[Unknown] = field(default_factory=list)

    def of(self, what: str, place: str) -> Trace:
        """The same for one lambda; functions that it calls are known to the others, too."""
        return replace(self, what=what, place=place, symbols=[])

    def fault(self, message: str, hint: str, code: str = "ACEP-Q070") -> QueryError:
        """An error that names the lambda, its file and line."""
        return QueryError(f"{message}, in {self.what} ({self.place})", code=code, hint=hint)

    def node(self, value: object) -> Expression:
        """The tree of a symbol or of a constant.

        Parameters
        ----------
        value : Symbol, bool, int, float, str, date, datetime, numpy scalar or None
            A time becomes its text.

        Returns
        -------
        Expression
            A `Constant` for what is no symbol.

        Raises
        ------
        QueryError
            ACEP-Q070: it is neither, or a symbol of another lambda.
        """
        if isinstance(value, Unknown):
            node: Expression = value._node_in(self)
            return node
        found = plain_value(value)
        if not isinstance(found, (bool, int, float, str)) and found is not None:
            hint = "use numbers, strings, True, False, times, attributes such as e.price and registers such as r.level"
            raise self.fault(f"{shown(value)} is no value of the query language", hint)
        if isinstance(found, float) and not math.isfinite(found):
            raise self.fault(f"{found} is no number of the query language", "use None for what is not known")
        return Constant(found)


def shown(value: object) -> str:
    """Any value, for a message."""
    return f"{value!r:.80}"


def plain_value(value: object) -> Any:
    """A value as it can stand in a tree.

    Parameters
    ----------
    value : object
        Anything.

    Returns
    -------
    object
        A Python value for a numpy scalar, the text of a time; other things as they are.

    Examples
    --------
    >>> plain_value(date(2026, 7, 1)), plain_value(True), plain_value([])
    ('2026-07-01', True, [])
    """
    if isinstance(value, date):
        return value.isoformat()
    if type(value).__module__ == "numpy" and hasattr(value, "item") and not getattr(value, "shape", ()):
        if "time" in type(value).__name__:  # `item` of nanoseconds is a number without its unit
            return str(value) if type(value).__name__ == "datetime64" else value
        return plain_value(value.item())
    if isinstance(value, str):
        return str.__str__(value)  # not the name of an Enum
    for kind in (bool, int, float):
        if isinstance(value, kind):
            return kind(value)
    return value


def known_registers(name: object, registers: Sequence[str]) -> str:
    """The hint for a register that is not declared.

    Parameters
    ----------
    name : object
        What was asked for.
    registers : sequence of str
        What is declared.

    Returns
    -------
    str
        Names all of them.
    """
    return f"{did_you_mean(str(name), registers)}registers are {', '.join(registers) or 'none'}: Afa(registers=...)"


_LOGIC = (
    "write & for `and`, | for `or`, ~ for `not`, with brackets around each part: (e.x > 1) & (e.x < 5); "
    ".is_in([...]) for `in`, .is_null() for `is None`; what needs more, in a function of your own: @afa.function"
)
_VALUE = "a lambda is called once, with symbols, not for each event: put the call into a function: @afa.function(...)"
_SET = 'give what registers become: then=lambda e, r: {"level": r.level + 1}'


# --- what lambdas get -------------------------------------------------------------------------------------


class Opaque(Unknown):
    """Base of all that lambdas get: refuses whatever would need a value, and says how else to write it."""

    __slots__ = ("__trace",)

    def __init__(self, trace: Trace) -> None:
        object.__setattr__(self, "_Opaque__trace", trace)

    def __setattr__(self, name: Any, value: object) -> NoReturn:
        raise trace_of(self).fault(f"{name!r} cannot be set here", _SET)

    __setitem__ = __setattr__

    def __bool__(self) -> NoReturn:
        said = "`and`, `or`, `not`, `if`, `in` or a chained comparison"
        raise trace_of(self).fault(f"{said} needs to know whether {text_of(self)}, which is a symbol, is true", _LOGIC)

    def __hash__(self) -> NoReturn:
        raise trace_of(self).fault(f"sets and dicts need values, and {text_of(self)} is a symbol", _LOGIC)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Symbol:
        op = _OF_NUMPY.get(ufunc.__name__)
        if op is None or method != "__call__" or options or len(inputs) != 2:
            raise trace_of(self).fault(f"numpy.{ufunc.__name__} needs numbers, and {text_of(self)} is a symbol", _VALUE)
        return _binary(self, op, *inputs)

    def __array_function__(self, function: Any, *_: Any) -> NoReturn:
        raise trace_of(self).fault(f"numpy.{function.__name__} needs numbers, and {text_of(self)} is a symbol", _VALUE)

    def __repr__(self) -> str:
        return f"<symbol {text_of(self)}>"

    def _node_in(self, trace: Trace) -> Expression:
        raise trace.fault(f"{text_of(self)} is no value", "write e.price for an attribute, r.level for a register")

    def _call_of(self, function: UserFunction, *_: Any) -> Any:
        hint = f"give it attributes and registers: {function.name}(e.price, r.level)"
        raise trace_of(self).fault(f"{function.name}() takes values, and {text_of(self)} is none", hint)


class Symbol(Opaque):
    """A value that is not known yet: an attribute, a register, or what is computed with these.

    Parameters
    ----------
    trace : Trace
        Of the lambda whose symbol it is.
    node : Expression
        The tree so far.

    Examples
    --------
    >>> price = Symbol(Trace("WHEN of a -> b", "trades.py:12", True, "t", (), {}), Attribute("t", None, "price"))
    >>> (price > 3) & price.is_in([5, 7])
    <symbol `t.price > 3 AND t.price IN (5, 7)`>
    """

    __slots__ = ("_node",)
    _node: Expression

    def __init__(self, trace: Trace, node: Expression) -> None:
        super().__init__(trace)
        object.__setattr__(self, "_node", node)
        trace.symbols.append(self)

    def _node_in(self, trace: Trace) -> Expression:
        if trace_of(self) is not trace:
            hint = "use symbols only in the lambda that they were given to"
            raise trace.fault(f"{text_of(self)} is a symbol of another lambda", hint)
        return self._node

    def is_null(self) -> Symbol:
        """``x IS NULL``: the value is not known."""
        return Symbol(trace_of(self), IsNull(self._node, negated=False))

    def is_not_null(self) -> Symbol:
        """``x IS NOT NULL``: the value is known."""
        return Symbol(trace_of(self), IsNull(self._node, negated=True))

    def between(self, low: object, high: object) -> Symbol:
        """``x BETWEEN low AND high``, both inclusive.

        Parameters
        ----------
        low, high : Symbol or constant
            The bounds.

        Returns
        -------
        Symbol
            A condition.
        """
        trace = trace_of(self)
        return Symbol(trace, Between(self._node, _known(trace, low), _known(trace, high), negated=False))

    def is_in(self, values: Iterable[object]) -> Symbol:
        """``x IN (1, 2)``.

        Parameters
        ----------
        values : iterable of constants
            At least one. Those of a set are sorted, so that the query has the same text every time.

        Returns
        -------
        Symbol
            A condition.

        Raises
        ------
        QueryError
            ACEP-Q070: nothing is listed, or what is no constant.
        """
        trace = trace_of(self)
        listed = values if isinstance(values, Iterable) and not isinstance(values, (str, Opaque)) else ()
        nodes = [trace.node(value) for value in listed]
        constants = tuple(node for node in nodes if isinstance(node, Constant))
        if not constants or len(constants) < len(nodes):
            raise trace.fault(f"is_in({shown(values)}) lists no constants", "write e.kind.is_in(['buy', 'sell'])")
        if isinstance(values, (set, frozenset)):
            constants = tuple(sorted(constants, key=repr))
        return Symbol(trace, In(self._node, constants, negated=False))

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)  # what Python and numpy ask of any object
        hint = "a symbol has operators, is_null, is_not_null, between and is_in; " + _VALUE
        raise trace_of(self).fault(f"{text_of(self)} is a symbol and has no {name!r}", hint)

    def __neg__(self) -> Symbol:
        return Symbol(trace_of(self), Unary("-", self._node))

    def __pos__(self) -> Symbol:
        return self

    def __invert__(self) -> Symbol:
        return Symbol(trace_of(self), Unary("NOT", self._node))

    def _call_of(self, function: UserFunction, arguments: Sequence[Any], named: Mapping[str, Any]) -> Symbol:
        trace = trace_of(self)
        known = trace.functions.setdefault(function.name, function)
        if known.compute is not function.compute or known != function:
            hint = "give one of them another name: @afa.function(name=..., ...)"
            raise trace.fault(f"two functions have the name {function.name!r}", hint, "ACEP-Q073")
        nodes = tuple(trace.node(value) for value in _in_order(trace, function, arguments, named))
        return Symbol(trace, FunctionCall(function.name, nodes))


class Events(Opaque):
    """The current event: ``e.change`` or ``e["dep time"]`` is the symbol of an attribute."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Symbol:
        if name.startswith("__"):
            raise AttributeError(name)
        return self[name]

    def __getitem__(self, name: object) -> Symbol:
        trace = trace_of(self)
        if not isinstance(name, str) or not name:
            raise trace.fault(f"{shown(name)} is no name of an attribute", 'write e.change or e["dep time"]')
        if not trace.has_event:
            raise trace.fault(f"there is no event whose {name!r} it could be", "EPSILON and TIMEOUT see registers only")
        if trace.variable is None and name in trace.registers:
            hint = f"for the attribute give the arc a name: name='t'; for the register write lambda e, r: ... r.{name}"
            raise trace.fault(f"{name!r} is an attribute here, and a register, too", hint, "ACEP-Q072")
        return Symbol(trace, Attribute(trace.variable, None, name))


class Registers(Opaque):
    """The registers of a run: ``r.level`` or ``r["level"]`` is the symbol of one."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Symbol:
        if name.startswith("__"):
            raise AttributeError(name)
        return self[name]

    def __getitem__(self, name: object) -> Symbol:
        trace = trace_of(self)
        if name not in trace.registers:
            raise trace.fault(f"no register {shown(name)}", known_registers(name, trace.registers), "ACEP-Q071")
        return Symbol(trace, RegisterValue(str(name)))


# --- what needs a value -----------------------------------------------------------------------------------


def _refusing(called: str, hint: str) -> Callable[..., NoReturn]:
    def refuse(self: Opaque, *_: object, **__: object) -> NoReturn:
        raise trace_of(self).fault(f"{called} needs a value, and {text_of(self)} is a symbol", hint)

    return refuse


_CALLED = "float int complex str format round trunc floor ceil abs len"
_FOREIGN = {
    **{name: f"{name}()" for name in _CALLED.split()},
    "index": "a place or a count",
    "iter": "going through it",
    "getitem": "[...]",
    "contains": "`in`",
    "call": "(...)",
    "array": "numpy",
    **dict.fromkeys(("pow", "rpow"), "**"),
    **dict.fromkeys(("floordiv", "rfloordiv"), "//"),
}
_COMPUTED = {"add": "+", "sub": "-", "mul": "*", "truediv": "/", "mod": "%", "and": "AND", "or": "OR"}
_COMPARED = {"eq": "=", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_REFLECTED = {f"r{name}": op for name, op in _COMPUTED.items()}
"""Operators of Python by their methods; the last are those whose left side is no symbol."""


def _operator(name: str, op: str) -> Callable[[Symbol, object], Symbol]:
    def computed(self: Symbol, other: object) -> Symbol:
        left, right = (other, self) if name in _REFLECTED else (self, other)
        return _binary(self, op, left, right)

    return computed


for _name, _words in _FOREIGN.items():
    setattr(Opaque, f"__{_name}__", _refusing(_words, _VALUE))
for _name, _op in (_COMPUTED | _COMPARED | _REFLECTED).items():
    setattr(Symbol, f"__{_name}__", _operator(_name, _op))
for _name in (*_COMPUTED, *_COMPARED, *_REFLECTED, "invert", "neg", "pos"):  # of the event and the registers as such
    setattr(Opaque, f"__{_name}__", _refusing("an operator", "write e.price for an attribute, r.level for a register"))

_OF_NUMPY = {
    "add": "+",
    "subtract": "-",
    "multiply": "*",
    "divide": "/",
    "true_divide": "/",
    "remainder": "%",
    "equal": "=",
    "not_equal": "!=",
    "less": "<",
    "less_equal": "<=",
    "greater": ">",
    "greater_equal": ">=",
    "bitwise_and": "AND",
    "bitwise_or": "OR",
}
"""What numpy's scalars make of an operator with a symbol on the other side."""


# --- helpers ----------------------------------------------------------------------------------------------


def trace_of(symbol: Opaque) -> Trace:
    """The lambda that was given a symbol."""
    found: Trace = object.__getattribute__(symbol, "_Opaque__trace")
    return found


def text_of(symbol: Unknown) -> str:
    """What a symbol stands for, for a message."""
    if isinstance(symbol, Symbol):
        return f"`{to_text(symbol._node):.80}`"
    return "the event" if isinstance(symbol, Events) else "the set of registers"


def _binary(symbol: Opaque, op: str, left: object, right: object) -> Symbol:
    trace = trace_of(symbol)
    if op in ("AND", "OR"):
        for value in (left, right):
            if not isinstance(value, Symbol) and not isinstance(plain_value(value), bool):
                hint = "& and | bind more strongly than comparisons: (e.x > 1) & (e.y < 2)"
                raise trace.fault(f"{op} joins conditions, and {shown(value)} is none", hint)
    return Symbol(trace, Binary(op, _known(trace, left), _known(trace, right)))


def _known(trace: Trace, value: object) -> Expression:
    """An operand: NULL as a constant is never what was meant."""
    if value is None:
        raise trace.fault("nothing can be compared or computed with None", "write .is_null() or .is_not_null()")
    return trace.node(value)


def _in_order(trace: Trace, function: UserFunction, given: Sequence[Any], named: Mapping[str, Any]) -> Sequence[Any]:
    try:
        signature = inspect.signature(function.compute)
    except (TypeError, ValueError):
        if named:
            raise trace.fault(f"{function.name}() takes no named arguments here", "give them in their order") from None
        return given
    try:
        bound = signature.bind(*given, **named)
    except TypeError as error:
        raise trace.fault(f"{function.name}(): {error}", f"it is {function.name}{signature}") from None
    found, count = signature.parameters, len(bound.args)
    if any(name not in found or found[name].kind is inspect.Parameter.KEYWORD_ONLY for name in bound.kwargs):
        raise trace.fault(f"{function.name}{signature} takes arguments by name alone", "let it take them in order")
    if bound.kwargs:
        count = max(map([*found].index, bound.kwargs)) + 1
        bound.apply_defaults()
    return bound.args[:count]


# --- lambdas that are called with them --------------------------------------------------------------------


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
    found = plain_value(found)
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
    try:
        found = inspect.signature(call).parameters.values()
    except (TypeError, ValueError):
        return -1
    places = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(one.kind in places and one.default is inspect.Parameter.empty for one in found)
