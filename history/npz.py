"""Arrays in an npz file, read as what a stranger may have written: nothing is made room for before it is known to come.

A header of a few bytes can ask for any number of values, and a few kilobytes of a zip file can unfold to gigabytes.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from pathlib import Path
from tokenize import TokenError
from typing import IO, Any
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

import numpy as np

from history.errors import HistoryError

Array = np.ndarray[Any, np.dtype[Any]]

MOST_BYTES = 1 << 32
"""What the arrays of one file may hold together."""
UNFOLDED = 1032
"""Bytes that one byte of deflate stands for, at most."""
SLACK = 64
HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
SUFFIX = ".npy"


def read_npz(file: Path | IO[bytes], most: int = MOST_BYTES) -> dict[str, Array]:
    """The arrays of an npz file, by name.

    Parameters
    ----------
    file : path or file
    most : int, default 4 GiB
        Bytes that the arrays may take together.

    Raises
    ------
    ValueError
        It is none, an array is not as long as its header says, or holds objects, or there is more than ``most``.

    Complexity: O(bytes of the arrays), which are at most ``most``.
    """
    try:
        with ZipFile(file) as archive:
            members = archive.infolist()
            _check_members(members, most)
            return {_name(member): _read(archive, member) for member in members}
    except (BadZipFile, EOFError, NotImplementedError, RuntimeError, zlib.error) as error:
        raise ValueError(f"no whole npz file: {error}") from error


def _check_members(members: list[ZipInfo], most: int) -> None:
    names = [_name(member) for member in members]
    if len(set(names)) < len(names):
        raise ValueError("two arrays have one name")
    for member in members:
        if member.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
            raise ValueError(f"{member.filename!r:.80} is compressed in another way")
        if member.file_size > UNFOLDED * member.compress_size + SLACK:
            raise ValueError(f"{member.filename!r:.80} cannot be as long as it says")
    total = sum(member.file_size for member in members)
    if total > most:
        raise ValueError(f"its arrays take {total:,} bytes, and {most:,} at most")


def _name(member: ZipInfo) -> str:
    return member.filename.removesuffix(SUFFIX)


def _read(archive: ZipFile, member: ZipInfo) -> Array:
    """One array, after what its header says was held against the size of the member."""
    with archive.open(member) as file:
        shape, is_fortran, kind = _header(file, member.filename)
        values = 1
        for size in shape:
            values *= size
        if kind.hasobject or not kind.itemsize or any(size < 0 for size in shape):
            raise ValueError(f"{member.filename!r:.80} holds no plain numbers or texts")
        if values * kind.itemsize != member.file_size - file.tell():
            raise ValueError(f"{member.filename!r:.80} is not as long as its shape {shape} says")
        held = bytearray(file.read())
        if len(held) != values * kind.itemsize:
            raise ValueError(f"{member.filename!r:.80} is cut off")
        return np.frombuffer(held, kind).reshape(shape, order="F" if is_fortran else "C")


def _header(file: IO[bytes], name: str) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, order and type of an array, as its header says."""
    version = np.lib.format.read_magic(file)
    if version not in HEADERS:
        raise ValueError(f"{name!r:.80} has another format of arrays")
    try:
        return HEADERS[version](file)
    except (ArithmeticError, MemoryError, RecursionError, SyntaxError, TokenError, TypeError) as error:
        raise ValueError(f"{name!r:.80} has no header that can be read") from error


def write_npz(file: Path, arrays: Mapping[str, Array]) -> None:
    """Write arrays, compressed.

    Raises
    ------
    HistoryError
        ``ACEP-H008``: they are more than ``read_npz`` would read.
    """
    total = sum(array.nbytes for array in arrays.values())
    if total > MOST_BYTES - (1 << 20):
        raise HistoryError(
            f"the history is too large to be saved: {file.name} would hold {total:,} bytes",
            code="ACEP-H008",
            hint="learn it with fewer bundles or fewer features",
        )
    np.savez_compressed(file, **arrays)  # type: ignore[arg-type]
