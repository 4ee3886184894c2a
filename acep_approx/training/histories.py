"""Histories of a program of several parts: one for each query by itself, for each template, for each part of rules.

A part is known by the fingerprint of its plan. So a history is of use to another set that has the same queries, and
queries that it does not know run as those without one.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Self

from acep_approx.errors import UsageError, expect
from acep_approx.planning.compiled import CompiledQuery
from acep_approx.planning.planner import Plan
from acep_approx.ranges import reading
from acep_approx.training.history_graph import HistoryGraph
from acep_approx.training.shared_promise import SharedPromises
from history.store import check_free, damaged, is_history

PROMISES = "promises.json"
"""What all parts together are promised to find, beside their folders."""


class Histories:
    """What was learned from the past of each part of a set of queries.

    Parameters
    ----------
    learned : mapping of str to HistoryGraph, optional
        By the fingerprints of plans.
    folder : path, optional
        Where others are read from when they are asked for.
    unchanged : collection of str, optional
        Those of ``learned`` to which nothing has come since they were saved: no new version is made of them.

    Attributes
    ----------
    promises_ : SharedPromises or None
        What runs inside budgets find, measured on the end of the past; None: nobody has measured.
    """

    promises_: SharedPromises | None = None

    def __init__(
        self,
        learned: Mapping[str, HistoryGraph] | None = None,
        folder: str | os.PathLike[str] | None = None,
        unchanged: Collection[str] = (),
    ) -> None:
        self._learned = dict(learned or {})
        self.folder = None if folder is None else Path(folder)
        self._unchanged = frozenset(unchanged)

    def of(self, plan: Plan, known_as: str) -> HistoryGraph | None:
        """The history of a part; None where there is none.

        Parameters
        ----------
        plan : Plan
            Whose partial matches it ranks.
        known_as : str
            The fingerprint that it is known by.

        Raises
        ------
        HistoryError
            That of a folder is damaged, or of another version.
        """
        if known_as not in self._learned and known_as in self:
            assert self.folder is not None, "there are no others"
            self._learned[known_as] = HistoryGraph.load(self.folder / known_as, CompiledQuery(plan))
        return self._learned.get(known_as)

    def __contains__(self, known_as: object) -> bool:
        return known_as in self._learned or (self.folder is not None and is_history(self.folder / str(known_as)))

    def __iter__(self) -> Iterator[str]:
        there = () if self.folder is None else sorted(one.name for one in self.folder.iterdir() if is_history(one))
        return iter(dict.fromkeys([*self._learned, *there]))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def save(self, folder: str | os.PathLike[str], *, new_version: bool = False) -> Path:
        """Write all of them to a new folder, each to a folder of its own in it, as ``HistoryGraph.save`` does.

        Parameters
        ----------
        folder : path
            A new or empty directory, or with ``new_version`` that of histories of the same parts.
        new_version : bool, default False
            Add a version to each history that is there already, if something new was learned.

        Raises
        ------
        HistoryError
            ``ACEP-H005``, ``ACEP-H006``: something is there already; ``ACEP-H002``: a history of another part.
        """
        expect("the folder of histories", folder, (str, os.PathLike), "the path of a directory")
        home = Path(folder)
        if not (new_version and (home.is_dir() and any(map(is_history, home.iterdir())))):
            check_free(home)
        home.mkdir(parents=True, exist_ok=True)
        for name, known in self._learned.items():
            is_there = is_history(home / name)
            if not (is_there and name in self._unchanged):
                known.save(home / name, new_version=is_there and new_version)
        keep_promises(home, self.promises_)
        return home

    @property
    def changed(self) -> list[str]:
        """Those to which something has come since they were saved."""
        return [name for name in self._learned if name not in self._unchanged]

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Self:
        """What ``save`` wrote; each history is read when its part asks for it.

        Raises
        ------
        UsageError
            ``ACEP-U036``: there is none.
        """
        expect("the folder of histories", folder, (str, os.PathLike), "the path of a directory")
        made = cls(folder=folder)
        assert made.folder is not None, "it was given"
        made.promises_ = kept_promises(made.folder)
        if not made.folder.is_dir() or not len(made):
            raise UsageError(
                f"there are no histories of a set in {str(folder)!r}",
                code="ACEP-U036",
                hint="learn them: acep train --queries FOLDER PAST -o DIR",
            )
        return made

    def __repr__(self) -> str:
        return f"<Histories of {len(self):,} part{'s' * (len(self) != 1)}>"


def keep_promises(home: Path, promises: SharedPromises | None) -> None:
    """Write what all together are promised to find beside their histories; None: what is there is no longer so."""
    file = home / PROMISES
    if promises is None:
        file.unlink(missing_ok=True)
    else:
        file.write_text(json.dumps(promises.as_json()), encoding="utf-8")


def kept_promises(home: Path) -> SharedPromises | None:
    """What ``keep_promises`` wrote, if anything.

    Raises
    ------
    HistoryError
        ``ACEP-H004``: it is damaged.
    """
    file = home / PROMISES
    if not file.is_file():
        return None
    with reading(lambda: damaged(file, "these are no promises")):
        return SharedPromises.from_json(json.loads(file.read_text(encoding="utf-8")))


def known_histories(given: Histories | str | os.PathLike[str] | None) -> Histories | None:
    """The histories of a set, as they are or from a folder."""
    expect("history", given, (Histories, str, os.PathLike, type(None)), "Histories, or the path of a folder of them")
    return Histories.load(given) if isinstance(given, str | os.PathLike) else given
