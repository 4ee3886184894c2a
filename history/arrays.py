"""Arrays: names of their types, and those that stand side by side."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from typing import Any, Self

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


def no_ints() -> Ints:
    """A column without rows."""
    return np.empty(0, np.int64)


class Columns:
    """Arrays side by side, for dataclasses of nothing else: the last axis of each counts the rows."""

    def __len__(self) -> int:
        return int(getattr(self, self._names()[0]).shape[-1])

    def __getitem__(self, chosen: Ints | Bools | slice) -> Self:
        return type(self)(*(getattr(self, name)[..., chosen] for name in self._names()))

    @classmethod
    def joined(cls, parts: Iterable[Self]) -> Self:
        """The rows of at least one part, one after the other."""
        of = [*parts]
        return cls(*(np.concatenate([getattr(part, name) for part in of], axis=-1) for name in cls._names()))

    @classmethod
    def _names(cls) -> list[str]:
        columns: Any = cls
        return [column.name for column in fields(columns)]
