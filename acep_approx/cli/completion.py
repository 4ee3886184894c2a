"""What the shell proposes where it cannot know: files behind the ``@`` of a query."""

from __future__ import annotations

from pathlib import Path

QUERIES = (".acep", ".cel", ".txt")
"""Ends of the names of files that hold queries."""


def query_files(incomplete: str) -> list[str]:
    """The files that ``@`` and the beginning of a path may mean; without ``@`` none: the shell has files itself.

    Parameters
    ----------
    incomplete : str
        What was typed so far.
    """
    if not incomplete.startswith("@"):
        return []
    folder, slash, beginning = incomplete[1:].rpartition("/")
    try:
        found = sorted(Path(folder + slash or ".").iterdir())
    except OSError:
        return []
    ends = [(path.name, "/" if path.is_dir() else "") for path in found if path.is_dir() or path.suffix in QUERIES]
    is_shown = [(name, end) for name, end in ends if name.startswith(beginning) and not name.startswith(".")]
    return [f"@{folder}{slash}{name}{end}" for name, end in is_shown]
