"""The zip of this package, for executors of Spark that have it not."""

from __future__ import annotations

import zipfile
from pathlib import Path

from acep_approx.events.writing.outfile import whole_file

ROOT = Path(__file__).resolve().parents[3]
"""Where this package lies."""
PACKAGES = ("acep_approx", "history", "rl")
NEEDED = ("numpy", "numba", "pyarrow", "pandas", "lark", "protobuf")
"""What executors must have all the same: it holds compiled code, or is too large to be sent."""
_EPOCH = (1980, 1, 1, 0, 0, 0)


def write_package(file: Path) -> int:
    """Write this package as a zip that Spark can send to its executors.

    Parameters
    ----------
    file : Path
        Ends in ``.zip``: Spark puts nothing else on the path of Python.

    Returns
    -------
    int
        How many files it holds. The same sources give the same bytes.
    """
    sources = sorted(
        path
        for package in PACKAGES
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    )
    with whole_file(file) as sink, zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sources:
            entry = zipfile.ZipInfo(path.relative_to(ROOT).as_posix(), _EPOCH)
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, path.read_bytes(), zipfile.ZIP_DEFLATED)
    return len(sources)
