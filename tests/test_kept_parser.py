"""The parser of the language is kept between processes, and made anew where what is kept is of no use."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from acep_approx.query import kept, parser
from tests.marking_pickle import marking_pickle

TEXT = "PATTERN SEQ(A a, ~(B b), C+ c[]) WHERE [key] AND a.x > 3 WITHIN 10 s ERRORS 1"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder to keep it in."""
    monkeypatch.setattr(kept, "directory", lambda: tmp_path)
    monkeypatch.setattr(kept, "folders", lambda: (tmp_path,))
    kept.parser.cache_clear()
    yield tmp_path
    kept.parser.cache_clear()


def made() -> object:
    """What a process that begins now reads in a query."""
    kept.parser.cache_clear()
    parser._kept.cache_clear()
    return parser.parse(TEXT)


def test_what_was_kept_reads_the_same(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = made()
    assert [path.suffix for path in folder.iterdir()] == [".lark"]
    monkeypatch.setattr("lark.Lark.__init__", lambda *_, **__: pytest.fail("it is made anew"))
    assert made() == first


@pytest.mark.parametrize("content", [b"", b"no pickle", b"\x80\x04N."])
def test_what_is_damaged_is_made_anew(folder: Path, content: bytes) -> None:
    first = made()
    (place,) = folder.iterdir()
    place.write_bytes(content)
    assert made() == first
    assert place.stat().st_size > len(content)


@pytest.mark.parametrize("mode", [0o664, 0o646])
def test_what_others_could_have_written_is_not_run(folder: Path, mode: int) -> None:
    """It is unpickled, which runs what it says."""
    first = made()
    (place,) = folder.iterdir()
    mark = folder / "mark"
    place.write_bytes(marking_pickle(mark))
    place.chmod(mode)
    assert made() == first
    assert not mark.exists()
    assert place.stat().st_mode & 0o777 == 0o644, "it is made anew, and used from then on"


def test_what_is_kept_under_any_umask_is_used(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = os.umask(0)
    try:
        first = made()
    finally:
        os.umask(before)
    monkeypatch.setattr("lark.Lark.__init__", lambda *_, **__: pytest.fail("it is made anew"))
    assert made() == first


def test_what_was_made_of_another_grammar_is_not_taken(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made()
    monkeypatch.setitem(kept.OPTIONS, "maybe_placeholders", True)
    kept.parser.cache_clear()
    kept.parser()
    assert len(list(folder.iterdir())) == 2


def test_where_nothing_can_be_kept(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = made()
    for places in ((), (folder / "gone",)):
        monkeypatch.setattr(kept, "folders", lambda places=places: places)
        monkeypatch.setattr(kept, "directory", lambda places=places: next(iter(places), None))
        assert made() == first


def test_what_another_user_has_made_is_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An image is filled by root; who runs it may not write there."""
    first = made()
    monkeypatch.setattr(kept, "directory", lambda: folder / "gone")
    monkeypatch.setattr("lark.Lark.__init__", lambda *_, **__: pytest.fail("it is made again"))
    assert made() == first
