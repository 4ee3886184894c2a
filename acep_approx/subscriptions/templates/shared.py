"""What one query of a template adds to it: its constants."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from acep_approx.engines.runs.event_columns import Kind
from acep_approx.subscriptions.templates.query_table import QueryTable, kind_of
from acep_approx.subscriptions.templates.template import Template


class Shared:
    """A template that queries share, and the constants of one of them.

    Parameters
    ----------
    template : Template
    constants : mapping of str to int, float, str or bool
        By the names of all its parameters. They are held here until a table has them, which takes a tenth of the room.
    """

    __slots__ = ("_row", "_table", "_values", "template")

    def __init__(self, template: Template, constants: Mapping[str, Any]) -> None:
        self.template = template
        self._values: tuple[Any, ...] | None = tuple(constants[name] for name in template.parameters)
        self._table: QueryTable | None = None
        self._row = -1

    def rest_in(self, table: QueryTable, row: int) -> None:
        """From now on the constants are looked up in a row of a table, which has them."""
        self._values, self._table, self._row = None, table, row

    def fresh(self) -> Shared:
        """The same, for another set."""
        return Shared(self.template, self.constants)

    @property
    def constants(self) -> dict[str, Any]:
        """By the names of the parameters."""
        return dict(zip(self.template.parameters, self._all(), strict=True))

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """Of the constants, in the order of the parameters: one table holds those of the same kinds."""
        if self._table is not None:
            return tuple(self._table.kinds[name] for name in self.template.parameters)
        return tuple(map(kind_of, self._all()))

    def new_table(self) -> QueryTable:
        """A table without rows for queries like this one."""
        return QueryTable(dict(zip(self.template.parameters, self.kinds, strict=True)))

    def _all(self) -> tuple[Any, ...]:
        if self._values is None:
            assert self._table is not None, "one of them has the constants"
            return self._table.constants(self._row, self.template.parameters)
        return self._values
