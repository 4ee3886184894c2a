"""The files that a run that lasts writes, cut back to where its checkpoint saw them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from acep_approx.events.writing.outfile import GrowingFile


class Outputs:
    """Files by what is written to them.

    Parameters
    ----------
    lengths : mapping of str to int, optional
        Bytes of each that are kept, where a run goes on. Default: all begin anew.

    Examples
    --------
    >>> import tempfile
    >>> place = Path(tempfile.mkdtemp()) / "found.jsonl"
    >>> _ = place.write_bytes(b"one two")
    >>> outputs = Outputs({"results": 4})
    >>> file = outputs.opener("results")(place)
    >>> _ = file.sink.write(b"three")
    >>> outputs.lengths(), place.read_bytes()
    ({'results': 9}, b'one three')
    >>> file.finish()
    """

    def __init__(self, lengths: Mapping[str, int] | None = None) -> None:
        self._lengths = dict(lengths or {})
        self._files: dict[str, GrowingFile] = {}

    def opener(self, name: str) -> Callable[[Path], GrowingFile]:
        """What opens the file of this name, at its length."""

        def opens(path: Path) -> GrowingFile:
            self._files[name] = GrowingFile(path, self._lengths.get(name))
            return self._files[name]

        return opens

    def lengths(self) -> dict[str, int]:
        """How long they are now, for good."""
        return self._lengths | {name: file.length() for name, file in self._files.items()}

    def close(self) -> None:
        """All has been written."""
        for file in self._files.values():
            file.finish()
