"""Every error of this package that a user can meet, with stable codes.

``docs/reference/errors.md`` lists them beside those of the matcher, which this package does not know.
"""

from __future__ import annotations

import re

EXIT_DATA = 4
_SETTINGS = re.compile(r"(\w://[^\s'\"?]+)\?[^\s'\"]*")


class HistoryError(Exception):
    """A learned history cannot be read, written or joined (exit code 4).

    Parameters
    ----------
    message : str
        What is wrong, with the offending value.
    code : str
        Stable identifier, ``"ACEP-H001"`` and on.
    hint : str, optional
        What to do about it.

    Examples
    --------
    >>> print(HistoryError("there is no history at 'past'", code="ACEP-H000", hint="learn one first"))
    ACEP-H000: there is no history at 'past'
      hint: learn one first
    """

    exit_code = EXIT_DATA

    def __init__(self, message: str, *, code: str, hint: str | None = None) -> None:
        message = _shown(message)
        super().__init__(message)
        self.message = message
        self.code = code
        self.hint = None if hint is None else _shown(hint)

    def __str__(self) -> str:
        text = f"{self.code}: {self.message}"
        return f"{text}\n  hint: {self.hint}" if self.hint else text


class PlaceError(HistoryError):
    """An object store cannot be reached, or refuses what is asked of it (exit code 4; 75 where it may pass).

    Parameters
    ----------
    passes : bool, default False
        Whether the same may go well later, with nothing changed.
    """

    def __init__(self, message: str, *, code: str, hint: str | None = None, passes: bool = False) -> None:
        super().__init__(message, code=code, hint=hint)
        self.passes = passes


def _shown(text: str) -> str:
    r"""A text whose characters that a terminal would obey are shown as in a string: files may hold any.

    Settings of an address are not shown: they may be signed.

    Examples
    --------
    >>> print(_shown("format \x1b]0;x\x07 \u202e é, 's3://bucket/past?signature=x'"))
    format \x1b]0;x\x07 \u202e é, 's3://bucket/past?...'
    """
    text = _SETTINGS.sub(r"\1?...", text)
    return "".join(one if one.isprintable() or one in "\n\t" else one.encode("unicode_escape").decode() for one in text)
