"""Histories of a program of several parts: one for each query by itself, for each template, for each part of rules.

A part is known by the fingerprint of its plan and by its window. So a history is of use to another set that has the
same queries, and queries that it does not know run as those without one.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import fields
from hashlib import sha256
from pathlib import Path
from typing import Any, Self

import numpy as np

from acep_approx.arguments import checked
from acep_approx.errors import DataError, UsageError, expect
from acep_approx.planning.compiled import CompiledQuery
from acep_approx.planning.planner import Plan
from acep_approx.ranges import reading
from acep_approx.training.history_graph import HistoryGraph, newest
from acep_approx.training.shared_promise import SharedPromises
from history.places import place_of
from history.store import check_free, damaged, is_history, nothing_at

PROMISES = "promises.json"
"""What all parts together are promised to find, beside their folders."""


class Histories:
    """What was learned from the past of each part of a set of queries, or of each rule: ``RuleHistory``.

    Parameters
    ----------
    learned : mapping of str to HistoryGraph, optional
        As plans are ``known_as``.
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
        self.folder = None if folder is None else place_of(folder)
        self._unchanged = frozenset(unchanged)

    def of(self, plan: Plan, known_as: str) -> HistoryGraph | None:
        """The history of a part; None where there is none.

        Parameters
        ----------
        plan : Plan
            Whose partial matches it ranks.
        known_as : str
            What it is known by.

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

    def read(self, plans: Mapping[str, Plan]) -> Self:
        """Read those of the folder at once that are of these plans, by what they are known by; gives itself.

        Raises
        ------
        HistoryError
            None is there (``ACEP-H001``), or one is of another query (``ACEP-H002``).
        """
        assert self.folder is not None, "there is one"
        there = [name for name, plan in plans.items() if self.of(plan, name) is not None]
        if plans and not there:
            raise nothing_at(self.folder, f"learn those of {', '.join(plans):.80}: acep train RULES PAST -o DIR")
        return self

    @checked
    def save(self, folder: str | os.PathLike[str], *, new_version: bool = False) -> Path:
        """Write all of them to a folder, each to a folder of its own in it, as ``HistoryGraph.save`` does.

        Parameters
        ----------
        folder : path
            New, empty, or one of histories.
        new_version : bool, default False
            Whether histories that are there get a new version, if something new was learned.

        Returns
        -------
        Path
            The folder.

        Raises
        ------
        HistoryError
            ``ACEP-H005``, ``ACEP-H006``: something is there already; ``ACEP-H002``: of another query.
        UsageError
            ``ACEP-U036``: nothing was learned yet.
        """
        expect("the folder of histories", folder, (str, os.PathLike), "the path of a directory")
        if not self._learned:
            what = "nothing was learned, so nothing can be saved"
            raise UsageError(what, code="ACEP-U036", hint="learn first, from a past with events that queries ask for")
        home = place_of(folder)
        if not _is_there(home) or not all(is_history(one) or one.name == PROMISES for one in home.iterdir()):
            check_free(home)
        home.mkdir(parents=True, exist_ok=True)
        for name, known in self._learned.items():
            is_there = is_history(home / name)
            if not (is_there and new_version and name in self._unchanged):
                known.save(home / name, new_version=new_version)
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
        if not _is_there(made.folder) or not len(made):
            is_of_one = is_history(made.folder)
            raise UsageError(
                f"there are no histories of a set in {str(folder)!r}{': it is that of one query' if is_of_one else ''}",
                code="ACEP-U036",
                hint="learn them: acep train --queries FOLDER PAST -o DIR",
            )
        made.promises_ = kept_promises(made.folder)
        return made

    def __repr__(self) -> str:
        return f"<Histories of {len(self):,} part{'s' * (len(self) != 1)}>"


class NewestHistories(Histories):
    """Those of a folder in which others write new versions: of each the one that holds, read once in a process."""

    def of(self, plan: Plan, known_as: str) -> HistoryGraph | None:
        """The newest version of the history of a part; None where there is none."""
        assert self.folder is not None, "they are those of a folder"
        home = self.folder / known_as
        return newest(home, CompiledQuery(plan)) if is_history(home) else None


def _is_there(folder: Path) -> bool:
    """Whether there is a directory; refused (``ACEP-H009``) where none can have this name."""
    return not is_history(folder) and folder.is_dir()


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


# --- in a state ---------------------------------------------------------------------------------------------


def told(known: HistoryGraph) -> dict[str, Any]:
    """What a state holds of a history, as JSON: by it another one is known when the run goes on."""
    return {"version": known.version_, "events": known.events_, "digest": digest(known)}


def digest(known: HistoryGraph) -> str:
    """Tells what was learned from what was learned otherwise; the same for a history that is saved and loaded.

    Complexity: O(history).
    """
    numbers: tuple[object, ...]
    numbers = (known.events_, known.points_, known.steps_per_event_, known.overlap_, known.prices_, known.work_)
    if known.search_ is not None:  # states of before have none
        numbers = (*numbers, known.search_)
    found = sha256(repr((known.fingerprint(known.window), *numbers)).encode())
    for part in (known.graph_.counts, known.learned_):
        columns = () if part is None else (getattr(part, column.name) for column in fields(part))
        for column in columns:
            if isinstance(column, np.ndarray):
                found.update(column.tobytes())
    return found.hexdigest()[:16]


def check_same(was: Mapping[str, Any] | None, known: HistoryGraph | None, of: str = "") -> None:
    """Refuse to go on with another history than before.

    Parameters
    ----------
    was : mapping or None
        What ``told`` gave of that one; None: there was none.
    known : HistoryGraph or None
        The one that is given now. A later version will do.
    of : str, optional
        Whose history it is, for people.

    Raises
    ------
    DataError
        ``ACEP-D048``: it is another one, or missing, or there was none.
    """
    of = " ".join(of.split())
    if was is None and known is not None:
        raise _other(f"without {_a_history(of)}, and one is given ({_words(told(known))})", "leave it out")
    if was is None:
        return
    if known is None:
        raise history_needed(was, of)
    if known.version_ > was["version"] > 0 or was.get("digest") in (None, digest(known)):  # states of before have none
        return
    what = f"with {_a_history(of)} ({_words(was)}), and another one is given ({_words(told(known))})"
    raise _other(what, "give that one, or a later version of it")


def history_needed(was: Mapping[str, Any] | None = None, of: str = "") -> DataError:
    """The error (``ACEP-D048``) that a state is of a run with a history, which must be given again.

    Parameters
    ----------
    was : mapping, optional
        What is known of the history: see ``told``.
    of : str, optional
        Whose it is, for people.
    """
    which = f"{_a_history(of)}{f' ({_words(was)})' if was else ''}"
    what = "give it too: history=... (--history DIR); a later version of it will do"
    return _other(f"with {which}, which is not in it", what)


def _a_history(of: str) -> str:
    return f"a history of {of!r}" if of else "a history"


def _other(what: str, hint: str) -> DataError:
    return DataError(f"the state is of a run {what}", code="ACEP-D048", hint=hint)


def _words(was: Mapping[str, Any]) -> str:
    version = f"version {was['version']}" if was["version"] else "never saved"
    return f"{version}, learned from {was['events']:,} events"
