"""The RETURN clause: expressions over the events of a match, evaluated for many matches at once."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from acep_approx.events.roles import Roles
from acep_approx.matching.recent import Recent
from acep_approx.query.evaluate import evaluate
from acep_approx.query.shape import walk
from acep_approx.query.syntax import Aggregate, Attribute, Output


class ReturnColumns:
    """Evaluates the outputs of a query; falsy when there are none.

    Parameters
    ----------
    outputs : tuple of Output
        Expressions over single (not Kleene) variables.
    roles : Roles

    Attributes
    ----------
    needed : tuple of str
        Columns of the events that the expressions read.

    Notes
    -----
    An expression over an event that is missing from the match is NULL.
    """

    def __init__(self, outputs: tuple[Output, ...], roles: Roles) -> None:
        self._outputs = outputs
        self._roles = roles
        attributes = [a for output in outputs for a in walk(output.value) if isinstance(a, Attribute)]
        self.needed = tuple(dict.fromkeys(roles.column(a.name) for a in attributes))

    def __bool__(self) -> bool:
        return bool(self._outputs)

    def columns(self, bound: dict[str, pa.Array], recent: Recent) -> dict[str, pa.Array]:
        """One column per output; ``bound`` holds the row numbers per variable."""

        def column(attribute: Attribute | Aggregate) -> pa.Array:
            assert isinstance(attribute, Attribute), "the planner lets no aggregate through"
            rows = bound[str(attribute.variable)]
            missing = pc.is_null(rows).to_numpy(zero_copy_only=False)
            filled = pc.fill_null(rows, 0).to_numpy()
            return recent.take(self._roles.column(attribute.name), filled, missing)

        matches = len(next(iter(bound.values())))
        return {output.name: _spread(evaluate(output.value, column), matches) for output in self._outputs}


def _spread(value: pa.Array | pa.Scalar, rows: int) -> pa.Array:
    """A constant as a column."""
    return pa.repeat(value, rows) if isinstance(value, pa.Scalar) else value
