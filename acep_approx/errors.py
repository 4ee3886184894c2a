"""Every error a user can meet: one base class, stable codes, documented exit codes.

``AcepError.code`` never changes once released; ``docs/reference/errors.md`` lists all of them.
"""

from __future__ import annotations

import errno
from weakref import finalize

from acep_approx.masks import masked
from acep_approx.visible import columns, printable, visible

EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_QUERY = 3
EXIT_DATA = 4
EXIT_TEMPORARY = 75
"""As ``EX_TEMPFAIL`` of ``sysexits.h``: the same command may go well later, with nothing changed."""
TEMPORARY = (
    *("EAGAIN", "EBUSY", "EDQUOT", "EIO", "EMFILE", "ENFILE", "ENOBUFS", "ENOLCK", "ENOSPC", "EREMOTEIO", "ESTALE"),
    *("EADDRINUSE", "ECONNABORTED", "ECONNREFUSED", "ECONNRESET", "EHOSTDOWN", "EHOSTUNREACH", "ENETDOWN"),
    *("ENETRESET", "ENETUNREACH", "ENOTCONN", "ETIMEDOUT"),
)
"""What the system refuses that may pass: no room, no answer, a lock, a port that another program has."""
_NUMBERS = frozenset(getattr(errno, name) for name in TEMPORARY if hasattr(errno, name))
_OF_SQLITE = ("SQLITE_BUSY", "SQLITE_FULL", "SQLITE_IOERR", "SQLITE_LOCKED")

WIDEST = 160
"""Characters of a query's line that an error shows at most."""


class AcepError(Exception):
    """Base of all errors of this package; in its words passwords are masked, and control characters shown.

    Parameters
    ----------
    message : str
        What is wrong, with the offending value.
    code : str
        Stable identifier, e.g. ``"ACEP-Q001"``.
    hint : str, optional
        What to do about it.
    passes : bool, default False
        Whether the same may go well later, with nothing changed: see ``is_temporary``.

    Attributes
    ----------
    found : object
        Where events are pushed: what came of those before the wrong one that were run. None where there was nothing.
    """

    exit_code = EXIT_FAILED
    found: object = None

    def __init__(self, message: str, *, code: str, hint: str | None = None, passes: bool = False) -> None:
        message = printable(masked(message))
        super().__init__(message)
        self.message = message
        self.code = code
        self.hint = None if hint is None else printable(masked(hint))
        self.passes = passes

    @property
    def is_temporary(self) -> bool:
        """Whether the same may go well later, with nothing changed (exit code 75)."""
        return is_temporary(self)

    def __str__(self) -> str:
        text = f"{self.code}: {self.message}"
        return f"{text}\n  hint: {self.hint}" if self.hint else text


def is_temporary(error: BaseException | None) -> bool:
    """Whether what failed may go well later, with nothing changed: the system or SQLite says so, or it is known.

    Examples
    --------
    >>> is_temporary(OSError(errno.ENOSPC, "no room")), is_temporary(OSError(errno.EACCES, "no right"))
    (True, False)
    """
    seen: list[BaseException] = []  # an error may be among its own causes: raise error from error
    while error is not None and not any(error is one for one in seen):
        seen.append(error)
        if getattr(error, "passes", False):
            return True
        if isinstance(error, OSError) and (error.errno in _NUMBERS or isinstance(error, TimeoutError)):
            return True
        if str(getattr(error, "sqlite_errorname", "")).startswith(_OF_SQLITE):
            return True
        error = error.__cause__
    return False


class UsageError(AcepError):
    """An argument of a call or of a command makes no sense (exit code 2)."""

    exit_code = EXIT_USAGE


def expect(name: str, value: object, kinds: type | tuple[type, ...], wanted: str) -> None:
    """Refuse an argument of a wrong type.

    Parameters
    ----------
    name : str
        Of the argument.
    value : object
        What was given.
    kinds : type or tuple of types
        What it may be.
    wanted : str
        The same in words.

    Raises
    ------
    UsageError
        ``ACEP-U053``.
    """
    if not isinstance(value, kinds):
        raise UsageError(
            f"{name} is {value!r:.80}, of type {type(value).__name__}", code="ACEP-U053", hint=f"give {wanted}"
        )


class UnknownNameError(UsageError, KeyError):
    """There is nothing of that name; a ``KeyError`` too, as Python's own protocols ask for."""


class NoSuchPlaceError(UsageError, IndexError):
    """There is nothing at that place; an ``IndexError`` too, as Python's own protocols ask for."""


class QueryError(AcepError):
    """The query text is wrong; knows where (exit code 3).

    Parameters
    ----------
    text : str
        The whole query.
    start, end : int
        Character offsets of the offending piece, ``0 <= start <= end <= len(text)``.

    Examples
    --------
    >>> print(QueryError("no such unit 'parsec'", code="ACEP-Q000", text="WITHIN 3 parsec", start=9, end=15))
    ACEP-Q000: no such unit 'parsec' (line 1, column 10)
      WITHIN 3 parsec
               ^^^^^^
    """

    exit_code = EXIT_QUERY

    def __init__(
        self, message: str, *, code: str, hint: str | None = None, text: str = "", start: int = 0, end: int = 0
    ) -> None:
        super().__init__(message, code=code, hint=hint)
        self.text = text
        self.start = start
        self.end = end

    @property
    def line(self) -> int:
        """Line of the offending piece, from 1."""
        return self.text.count("\n", 0, self.start) + 1

    @property
    def column(self) -> int:
        """Column of the offending piece, from 1."""
        return self.start - (self.text.rfind("\n", 0, self.start) + 1) + 1

    def caret(self) -> str:
        """The offending line with a row of carets below the piece; a long line is cut around it."""
        line = self.text.split("\n")[self.line - 1]
        at = self.column - 1
        cut = max(0, at - WIDEST // 2)
        end = min(at + max(1, self.end - self.start), len(line), cut + WIDEST)
        before, piece, after = (visible(part) for part in (line[cut:at], line[at:end], line[end : cut + WIDEST]))
        before, after = ("..." if cut else "") + before, after + ("..." if cut + WIDEST < len(line) else "")
        return f"  {before}{piece}{after}\n  {' ' * columns(before)}{'^' * max(1, columns(piece))}"

    def __str__(self) -> str:
        text = f"{self.code}: {self.message}"
        if self.text:
            text += f" (line {self.line}, column {self.column})\n{self.caret()}"
        return f"{text}\n  hint: {self.hint}" if self.hint else text


class UnsupportedError(QueryError):
    """The query is right, but no engine here can run it yet (exit code 3)."""


class LimitError(QueryError):
    """A stated size limit was passed (exit code 3).

    Parameters
    ----------
    given, limit : int
        The size that was asked for, and the largest one allowed.
    """

    def __init__(
        self,
        message: str,
        *,
        code: str,
        given: int,
        limit: int,
        hint: str | None = None,
        text: str = "",
        start: int = 0,
        end: int = 0,
    ) -> None:
        super().__init__(message, code=code, hint=hint, text=text, start=start, end=end)
        self.given = given
        self.limit = limit


class DataError(AcepError):
    """The events are wrong: a missing column, a wrong type, time that runs backwards (exit code 4).

    Parameters
    ----------
    row : int, optional
        Number of the first offending row, from 0, counted over the whole input.

    Attributes
    ----------
    found : table or None
        Where events are pushed, more than 131,072 at once: the results of the batches before the wrong one, which were
        taken in. None where there was none.
    """

    exit_code = EXIT_DATA

    def __init__(
        self, message: str, *, code: str, hint: str | None = None, row: int | None = None, passes: bool = False
    ) -> None:
        super().__init__(message, code=code, hint=hint, passes=passes)
        self.row = row


def stopped_within(what: str) -> DataError:
    """Return the error for a run that cannot go on, since an error stopped it in the middle of a batch (``ACEP-D045``).

    Parameters
    ----------
    what : str
        Such as "this matcher".
    """
    return DataError(
        f"{what} stopped in the middle of a batch, and cannot go on from there",
        code="ACEP-D045",
        hint="go on from a state that was saved before that batch, or begin anew",
    )


class RuleError(DataError):
    """An action of a rule cannot be done: its transaction is undone, all is as it was before (exit code 4).

    Parameters
    ----------
    rule : str
        Its name.
    outcome : object
        What came of the events before, of those that were given together.
    row : int or None
        The event; None where the end of a window caused it.
    """

    def __init__(
        self, message: str, *, code: str, hint: str, row: int | None, rule: str, outcome: object = None
    ) -> None:
        super().__init__(message, code=code, hint=hint, row=row)
        self.rule = rule
        self.found = outcome

    @property
    def outcome(self) -> object:
        """What came of the events before, of those that were given together."""
        return self.found


class StoreError(AcepError):
    """The file that holds the store of a run cannot be used, or does not hold what it should (exit code 4)."""

    exit_code = EXIT_DATA


class UnseenTypeWarning(UserWarning):
    """A query names a type that no event of the whole input had: it may be spelled otherwise there."""


class TextOrderWarning(UserWarning):
    """A query compares texts by their order, and almost all of them are numbers: ``'10'`` comes before ``'9'``."""


class CappedCountWarning(UserWarning):
    """There are more matches than can be counted: a number of them means at least so many."""


class ManyMatchesWarning(UserWarning):
    """There are more matches than anybody reads, most of them of the same case: a clause of the query limits them."""


class ManyKeysWarning(UserWarning):
    """Very many keys are kept, and more with each key that comes: windows of events do not close without events."""


class FewPointsWarning(UserWarning):
    """A history was learned from so few match points that it says little about which runs are worth keeping."""


class NeedlessHistoryWarning(UserWarning):
    """A history was given, or is learned, for a query that is matched exactly in few steps: none is used."""


class NoLearningWarning(UserWarning):
    """A run was to learn on the way, and some of what it runs cannot: it goes on as it began."""


_told: dict[int, set[str]] = {}
"""What was told of objects that are still there, by their identity."""


def is_news(about: object, what: str) -> bool:
    """Return whether this was not told yet of an object; from now on it was.

    Parameters
    ----------
    about : object
        A query, its plan or its automaton.
    what : str

    Examples
    --------
    >>> class Asked:
    ...     pass
    >>> query = Asked()
    >>> is_news(query, "no such type"), is_news(query, "no such type"), is_news(query, "no such key")
    (True, False, True)
    """
    if id(about) not in _told:
        _told[id(about)] = set()
        finalize(about, _told.pop, id(about))
    told = _told[id(about)]
    is_new = what not in told
    told.add(what)
    return is_new
