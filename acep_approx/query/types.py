"""Types of expressions against a schema: unknown attributes, and operators on values of the wrong kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Literal, cast

from acep_approx.query.assemble import did_you_mean
from acep_approx.query.functions import FUNCTIONS, branches
from acep_approx.query.printer import to_text
from acep_approx.query.syntax import (
    Aggregate,
    Apply,
    Attribute,
    Between,
    Binary,
    Constant,
    Expression,
    FunctionCall,
    In,
    IsNull,
    Lasting,
    Machine,
    Moment,
    Parameter,
    QuerySyntax,
    Read,
    RegisterValue,
    Span,
    Unary,
    Written,
)

if TYPE_CHECKING:
    import pyarrow as pa

Kind = Literal[
    "number", "string", "boolean", "time", "duration", "unknown", "other",
    "list of number", "list of string", "list of boolean", "list of unknown",
]  # fmt: skip
"""What a value is. ``unknown`` (NULL) goes with everything, ``other`` only with IS NULL, lists with IN and length."""

NAMES: dict[Kind, str] = {
    "number": "a number",
    "string": "a string",
    "boolean": "a boolean",
    "time": "a time",
    "duration": "a duration",
    "unknown": "unknown",
    "other": "of a type without operators",
    "list of number": "a list of numbers",
    "list of string": "a list of strings",
    "list of boolean": "a list of booleans",
    "list of unknown": "a list",
}
"""Kinds in words."""
ITEMS: dict[Kind, Kind] = {
    "list of number": "number",
    "list of string": "string",
    "list of boolean": "boolean",
    "list of unknown": "unknown",
}
"""What the values in lists are."""
KIND_OF_HELD: dict[str, Kind] = {
    "int": "number",
    "float": "number",
    "truth": "boolean",
    "bool": "boolean",
    "text": "string",
    "time": "time",
    "duration": "duration",
}
"""What the values of a register, a function or a column of a table are, by what it holds."""
_DECLARED = {"number": "FLOAT", "string": "TEXT", "boolean": "BOOLEAN", "time": "TIME", "duration": "DURATION"}
OF_TIMES: dict[tuple[Kind, str, Kind], Kind] = {
    ("time", "-", "time"): "duration",
    ("time", "-", "duration"): "time",
    ("time", "+", "duration"): "time",
    ("duration", "+", "time"): "time",
    ("duration", "+", "duration"): "duration",
    ("duration", "-", "duration"): "duration",
    ("duration", "*", "number"): "duration",
    ("number", "*", "duration"): "duration",
    ("duration", "/", "number"): "duration",
    ("duration", "/", "duration"): "number",
}
"""What is computed of times and durations: the kind that each operator gives for two kinds."""
_MAY_BE_OF_TIMES = {
    *(("unknown", op, "unknown") for op in ("+", "-", "*", "/")),
    *(("unknown", "*", "number"), ("number", "*", "unknown"), ("unknown", "/", "number")),
}
PLAIN_TIMES = "where the time column holds plain numbers, say what they count: --unit s (unit='s' in Python)"
_COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")


def kinds(schema: pa.Schema) -> dict[str, Kind]:
    """The kind of every column of an Arrow schema.

    Parameters
    ----------
    schema : pyarrow.Schema
        Columns of the events. Dictionary-encoded columns have the kind of their values.

    Returns
    -------
    dict of str to Kind
        In the order of the schema.

    Examples
    --------
    >>> import pyarrow as pa
    >>> kinds(pa.schema([("price", pa.float32()), ("type", pa.dictionary(pa.int32(), pa.string()))]))
    {'price': 'number', 'type': 'string'}
    """
    return {field.name: _kind(field.type) for field in schema}


def _kind(arrow: pa.DataType) -> Kind:
    from pyarrow import types

    if types.is_dictionary(arrow):
        arrow = arrow.value_type
    if types.is_integer(arrow) or types.is_floating(arrow) or types.is_decimal(arrow):
        return "number"
    if types.is_string(arrow) or types.is_large_string(arrow) or types.is_string_view(arrow):
        return "string"
    if types.is_boolean(arrow):
        return "boolean"
    if types.is_timestamp(arrow) or types.is_date(arrow):
        return "time"
    if types.is_list(arrow) or types.is_large_list(arrow) or types.is_fixed_size_list(arrow):
        return {item: several for several, item in ITEMS.items()}.get(_kind_of_item(arrow.value_type), "other")
    return "unknown" if types.is_null(arrow) else "other"


def _kind_of_item(arrow: pa.DataType) -> Kind:
    from pyarrow import types

    is_plain = not (types.is_dictionary(arrow) or types.is_decimal(arrow) or types.is_string_view(arrow))
    return _kind(arrow) if is_plain else "other"


def check_types(query: QuerySyntax, schema: Mapping[str, Kind]) -> list[str]:
    """Refuse a query that names attributes the events do not have, or mixes types.

    Parameters
    ----------
    query : QuerySyntax
        A query that passed `acep_approx.query.checks.check`.
    schema : mapping of str to Kind
        The attributes of the events, for example from `kinds`.

    Returns
    -------
    list of str
        The attributes that it names, each once: without them it would be refused.

    Raises
    ------
    QueryError
        ACEP-Q060 (unknown attribute), Q061 (values that cannot be compared), Q062 (no number), Q063 (no
        condition), Q064 (aggregate), Q065 (not a time), Q173 (argument of a function).

    Examples
    --------
    >>> from acep_approx.query import parse
    >>> query = parse("PATTERN A a WHERE a.prise > 10 WITHIN 5")
    >>> check_types(query, {"price": "number"})  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    acep_approx.errors.QueryError: ACEP-Q060: no attribute 'prise' ...
    """
    checker = TypeChecker(query.text, schema)
    checker.query(query)
    return list(checker.named)


class TypeChecker(Written):
    """Finds the kind of expressions over one schema.

    Parameters
    ----------
    text : str
        What positions refer to.
    schema : mapping of str to Kind
        The attributes of the events.
    """

    def __init__(self, text: str, schema: Mapping[str, Kind]) -> None:
        self.text = text
        self.schema = schema
        self.named: dict[str, Kind] = {}
        self.registers: dict[str, str] = {}
        self.functions: dict[str, str] = {}

    def query(self, query: QuerySyntax) -> None:
        """Check all conditions and outputs of a query."""
        self.functions = {function.name: function.holds for function in query.functions}
        if isinstance(query.pattern, Machine):
            self.machine(query.pattern)
        for equivalence in query.equivalences:
            self.attribute(equivalence.name, equivalence.span)
        for predicate in query.predicates:
            self.condition(predicate)
        for output in query.outputs:
            self.kind(output.value)
        for definition in query.definitions:
            self.condition(definition.condition)

    def attribute(self, name: str, span: Span) -> Kind:
        """The kind of an attribute of the events."""
        if name not in self.schema:
            known = ", ".join(self.schema)
            near = did_you_mean(name, [*self.schema, *self.registers])
            hint = near + f"attributes are {known or '(none)'}"
            if self.registers:
                hint += f"; registers are {', '.join(self.registers)}"
            raise self.fault("ACEP-Q060", f"no attribute {name!r}", span, hint)
        self.named[name] = self.schema[name]
        return self.named[name]

    def read(self, read: Read) -> Kind:
        """The kind of what is read of a table; only files of rules have tables."""
        raise NotImplementedError(f"no table {read.table!r}")

    def machine(self, machine: Machine) -> None:
        """Check the conditions and the moves of an automaton written by hand."""
        self.registers = {register.name: register.holds for register in machine.registers}
        for condition in [arc.when for arc in machine.arcs] + [rule.when for rule in machine.ignores]:
            if condition is not None:
                self.condition(condition)
        for one in (one for arc in machine.arcs for one in arc.sets):
            found, wanted = self.kind(one.value), KIND_OF_HELD[self.registers[one.register]]
            if found not in (wanted, "unknown") and not (wanted == "time" and isinstance(one.value, Constant)):
                hint = f"declare what the register holds: {one.register} {_DECLARED.get(found, 'FLOAT')}"
                if (found, wanted) == ("string", "time"):
                    hint = f"of a time in text make one: {one.register} = to_time({to_text(one.value)})"
                message = f"the register {one.register!r} holds {NAMES[wanted]}, and this is {NAMES[found]}"
                raise self.fault("ACEP-Q913", message, one.span, hint)

    def condition(self, expr: Expression) -> None:
        """Refuse an expression that is not true or false."""
        found = self.kind(expr)
        if found not in ("boolean", "unknown"):
            hint = "a condition compares values: a.price > 10"
            raise self.fault("ACEP-Q063", f"this is {NAMES[found]}, not a condition", expr.span, hint)

    def kind(self, expr: Expression) -> Kind:  # noqa: PLR0911, PLR0912  one for each kind of node
        """The kind of an expression, all parts of which are checked."""
        match expr:
            case Constant(value=value):
                return _kind_of_value(value)
            case Attribute(name=name, span=span):
                return self.attribute(name, span)
            case Aggregate():
                return self._aggregate(expr)
            case Lasting():
                return "duration"
            case Parameter(name=name, span=span):
                return self.attribute(f":{name}", span)
            case RegisterValue(name=name):
                return KIND_OF_HELD[self.registers[name]]
            case FunctionCall(name=name, arguments=arguments):
                for argument in arguments:
                    self.kind(argument)
                return KIND_OF_HELD[self.functions[name]]
            case Apply():
                return self._applied(expr)
            case Read():
                return self.read(expr)
            case Unary(op="NOT", operand=operand):
                self.condition(operand)
                return "boolean"
            case Unary(operand=operand):
                found = self.kind(operand)
                return found if found in ("duration", "unknown") else self._number(operand, found)
            case Binary(op=op, left=left, right=right):
                return self._binary(expr, op, left, right)
            case In(operand=operand, values=values):
                for listed in values:
                    self._comparable(expr, "=", operand, listed)
                return "boolean"
            case Between(operand=operand, low=low, high=high):
                self._comparable(expr, "<=", low, operand)
                self._comparable(expr, "<=", operand, high)
                return "boolean"
            case IsNull(operand=operand):
                self.kind(operand)
                return "boolean"

    def _binary(self, expr: Expression, op: str, left: Expression, right: Expression) -> Kind:
        if op in ("AND", "OR"):
            self.condition(left)
            self.condition(right)
            return "boolean"
        if op in _COMPARISONS:
            self._comparable(expr, op, left, right)
            return "boolean"
        first, second = self.kind(left), self.kind(right)
        if not {"time", "duration"} & {first, second}:
            self._number(left, first)
            self._number(right, second)
            return "unknown" if (first, op, second) in _MAY_BE_OF_TIMES else "number"
        for kind, other in ((first, right), (second, left)):
            if op == "-" and kind == "time" and isinstance(other, Constant) and isinstance(other.value, str):
                self.time(other, other.value)
                return "duration"
        for kind, part in ((first, left), (second, right)):
            if kind == "string":
                self._number(part, kind)
        return self._of_times(expr, op, first, second)

    def _of_times(self, expr: Expression, op: str, first: Kind, second: Kind) -> Kind:
        """The kind of what is computed of times and durations."""
        if "unknown" in (first, second):
            return "unknown"
        found = OF_TIMES.get((first, op, second))
        if found is None:
            hint = "time - time and duration / number are durations, time + duration is a time"
            if "number" in (first, second):
                hint += f"; {PLAIN_TIMES}" if op in ("+", "-") else ""
            message = f"there is no {NAMES[first].split()[-1]} {op} {NAMES[second].split()[-1]}"
            raise self.fault("ACEP-Q062", message, expr.span, hint)
        return found

    def _applied(self, call: Apply) -> Kind:
        """The kind of what a function gives; arguments that are all of one kind are like the first that is known."""
        if call.name == "IN":
            return self._member(*call.arguments)
        function = FUNCTIONS[call.name]
        first: Kind = "unknown"
        arguments: Sequence[Expression] = call.arguments
        if call.name == "CASE":
            conditions, arguments = branches(arguments)
            for condition in conditions:
                self.condition(condition)
        for place, argument in enumerate(arguments):
            found, wanted = self.kind(argument), "value" if call.name == "CASE" else function.wanted(place)
            if wanted not in ("ordered", "value"):
                fits = found in (wanted, "unknown") or (call.name == "length" and found in ITEMS)
                wanted = NAMES[cast("Kind", wanted)]
            else:
                fits = found != "other" and found not in ITEMS and (found != "boolean" or wanted == "value")
                wanted = "a number, a string or a time"
                if fits and first != "unknown" and found not in (first, "unknown"):
                    fits, wanted = False, f"values of one kind, first {NAMES[first]}"
                    if first == "time" and isinstance(argument, Constant) and isinstance(argument.value, str):
                        self.time(argument, argument.value)
                        fits = True
                first = found if first == "unknown" else first
            if not fits:
                hint = _hint_on_argument(call.name, found, argument)
                message = f"{call.name} takes {wanted}, and this is {NAMES[found]}"
                raise self.fault("ACEP-Q173", message, argument.span, hint)
        return first if function.result == "same" else cast("Kind", function.result)

    def _member(self, item: Expression, several: Expression) -> Kind:
        first, second = self.kind(item), self.kind(several)
        if second not in (*ITEMS, "unknown"):
            hint = f"values stand in brackets: {to_text(item)} IN ({to_text(several)})"
            raise self.fault("ACEP-Q176", f"this is {NAMES[second]}, and no list", several.span, hint)
        wanted = ITEMS.get(second, "unknown")
        if first in ITEMS or first == "other" or (first != wanted and "unknown" not in (first, wanted)):
            hint = "one value is looked for in a list of values of its kind"
            raise self.fault("ACEP-Q176", f"{NAMES[first]} cannot be in {NAMES[second]}", item.span, hint)
        return "boolean"

    def _number(self, expr: Expression, found: Kind) -> Kind:
        if found not in ("number", "unknown"):
            raise self.fault(
                "ACEP-Q062", f"this is {NAMES[found]}, not a number", expr.span, _hint_on_arithmetic(found, expr)
            )
        return "number"

    def _comparable(self, expr: Expression, op: str, left: Expression, right: Expression) -> None:
        first, second = self.kind(left), self.kind(right)
        for found, part, other in ((first, left, right), (second, right, left)):
            if found in ITEMS:
                word = "NOT IN" if op == "!=" else "IN"
                hint = f"a list is searched with IN: {to_text(other)} {word} {to_text(part)}"
                if first in ITEMS and second in ITEMS:
                    hint = "two lists cannot be compared; one value can be looked for in a list: b.x IN a.list"
                raise self.fault("ACEP-Q061", f"this is {NAMES[found]}", part.span, hint)
            if found == "other":
                hint = "only IS NULL can be asked of it; change the column to numbers, strings or times"
                raise self.fault("ACEP-Q061", f"this is {NAMES[found]}", part.span, hint)
            if found == "boolean" and op not in ("=", "!="):
                hint = "compare with = or !="
                raise self.fault("ACEP-Q061", f"booleans have no order for {op}", part.span, hint)
        if "unknown" in (first, second) or first == second:
            return
        for kind, other in ((first, right), (second, left)):
            if kind == "time" and isinstance(other, Constant) and isinstance(other.value, str):
                self.time(other, other.value)
                return
        message = f"{NAMES[first]} cannot be compared with {NAMES[second]}"
        raise self.fault("ACEP-Q061", message, expr.span, _comparison_hint(op, left, right, {first, second}))

    def time(self, expr: Constant, value: str) -> None:
        """Refuse a text that is not a time."""
        try:
            datetime.fromisoformat(value)
        except ValueError:
            hint = "write it as '2013-01-31' or '2013-01-31T12:30:00'"
            raise self.fault("ACEP-Q065", f"{value!r} is not a time", expr.span, hint) from None

    def _aggregate(self, expr: Aggregate) -> Kind:
        found: Kind = "unknown" if expr.name is None else self.attribute(expr.name, expr.span)
        if expr.function == "count":
            return "number"
        wrong = (
            (expr.function in ("sum", "avg", "stddev") and found not in ("number", "unknown"))
            or (expr.function in ("min", "max") and found in ("boolean", "other", *ITEMS))
            or (expr.function == "count distinct" and found in ("other", *ITEMS))
        )  # fmt: skip
        if wrong:
            hint = "sum, avg and stddev take numbers; min and max take numbers, strings and times"
            message = f"{expr.name!r} is {NAMES[found]}: no {expr.function} of it"
            raise self.fault("ACEP-Q064", message, expr.span, hint)
        return "number" if expr.function == "count distinct" else found


def _kind_of_value(value: object) -> Kind:
    if value is None:
        return "unknown"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, Moment):
        return "time"
    return "string" if isinstance(value, str) else "number"


def _comparison_hint(  # noqa: PLR0911  one for each mistake
    op: str, left: Expression, right: Expression, found: set[Kind]
) -> str:
    if found == {"duration", "number"}:
        number = next((part.value for part in (left, right) if isinstance(part, Constant)), None)
        return PLAIN_TIMES if number is None else f"a duration has a unit: {number} s, {number} min"
    if found == {"time", "number"}:  # 2013-01-31 is a difference
        return f"{_SAME}; a time stands in quotes: '2013-01-31' or '2013-01-31T12:30:00'"
    for part in (left, right):
        if isinstance(part, Attribute) and found == {"time", "string"}:
            return f"{_SAME}; if {part.name!r} is a time in text, {_as_time(part)}"
        if isinstance(part, Constant) and found == {"number", "string"}:
            if isinstance(part.value, str):
                try:
                    float(part.value)
                except ValueError:
                    return _SAME
                return f"numbers stand without quotes: {part.value}"
            return _hint_on_texts(op, right if part is left else left, part)
        if isinstance(part, Constant) and "boolean" in found:
            return "write TRUE or FALSE without quotes" if isinstance(part.value, (str, int)) else _SAME
    return _SAME


def _hint_on_argument(name: str, found: Kind, argument: Expression) -> str:
    if FUNCTIONS[name].wanted(0) == "time":
        if found == "string":
            return f"if this is a time in text, write {name}(to_time({to_text(argument)}))"
        return PLAIN_TIMES if found == "number" else f"{name} is of one time: {name}(a.ts)"
    if isinstance(argument, Attribute) and found in ("string", "number"):
        wanted = "float" if found == "string" else "text"
        given = f"--column-type {argument.name}={wanted} (column_types={{{argument.name!r}: {wanted!r}}} in Python)"
        return f"if {argument.name!r} was read as another kind than it is, say so: {given}"
    return f"the table of functions in docs/reference/language.md says what {name} takes"


def _hint_on_arithmetic(found: Kind, expr: Expression) -> str:
    """What to do where a text stands in arithmetic: it may be a time, which JSON has no type for."""
    if isinstance(expr, Aggregate) and found == "string":
        return f"arithmetic is for numbers and times; {expr.function} of times in text compares texts"
    if found != "string" or not isinstance(expr, Attribute) or expr.variable == "old":  # of a table of rules
        return "arithmetic is for numbers"
    return f"arithmetic is for numbers and times; if {expr.name!r} is a time in text, {_as_time(expr)}"


def _as_time(text: Expression) -> str:
    """How a text becomes a time."""
    how = "say how it is written: --time-format '%Y-%m-%dT%H:%M:%SZ' (time_format= in Python)"
    return f"write to_time({to_text(text)}), which rules and CEL do not have, or {how}"


def _hint_on_texts(op: str, text: Expression, number: Constant) -> str:
    """What to do where a number is compared with texts: these may be numbers, which have another order."""
    column = text.name if isinstance(text, (Attribute, Aggregate)) else None
    if column is None:
        return f"strings stand in quotes: '{number.value}'"
    read = f"--column-type {column}=float (column_types={{{column!r}: 'float'}} of open_source in Python)"
    quoted = "" if op not in ("=", "!=") else f"; strings stand in quotes: '{number.value}'"
    return f"if {column!r} holds numbers that were read as text, say so: {read}{quoted}"


_SAME = "both sides must be of one type"
