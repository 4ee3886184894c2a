"""Places that are no files of this machine: addresses, and what lies in an object store.

``place_of`` makes a path of a text: that of a file, or one that stands for an object, ``s3://bucket/key``, and answers
what a path is asked: what is there, what is in it, what lies below it. Paths of this machine stay what they are.

An object is put as a whole, so whoever reads sees all of it, or the one before. What a store refuses is a
``PlaceError``; what is not there is a ``FileNotFoundError``, as it is with files.
"""

from __future__ import annotations

import io
import mmap
import os
import re
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from typing import IO, Any, BinaryIO, cast

from history.errors import PlaceError

ADDRESS = re.compile(r"(jdbc:\w+(?=:)|[A-Za-z][A-Za-z0-9+.-]+(?=:/)):")
"""How an address begins, which ``Path`` has made one slash of two in."""
STORES = {"s3": "s3", "s3a": "s3", "s3n": "s3", "gs": "gs", "gcs": "gs", "abfs": "abfs", "abfss": "abfss"} | {
    "hdfs": "hdfs",
    "viewfs": "viewfs",
}
"""Schemes of places in stores, as Spark and others write them; and as Arrow calls them."""
_PARTS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(/+)([^?]*)(\?.*)?", re.DOTALL)
BUFFER = 1 << 20
"""Bytes that are read of an object at a time."""
_TROUBLE = (
    r"NETWORK_CONNECTION|curlCode|SLOW_DOWN|SERVICE_UNAVAILABLE|INTERNAL_FAILURE|THROTTLING|REQUEST_TIMEOUT"
    r"|REQUEST_TIME_TOO_SKEWED|HTTP status(?: code)?:? (?:5\d\d|429)|[Tt]imed? ?out|Connection refused"
)
REFUSED = "ACEP-H012"
"""The code of what the store does not let somebody do."""
_NO_BUCKET = r"NO_SUCH_BUCKET|Bucket '[^']*' not found|ContainerNotFound"
_REFUSED = (
    r"ACCESS_DENIED|INVALID_ACCESS_KEY_ID|SIGNATURE_DOES_NOT_MATCH|INVALID_CLIENT_TOKEN_ID|UNRECOGNIZED_CLIENT"
    r"|MISSING_AUTHENTICATION_TOKEN|EXPIRED_?TOKEN|ExpiredToken|HTTP status(?: code)?:? 40[13]|[Cc]redentials"
)


def is_remote(place: object) -> bool:
    """Return whether a place is an address, such as ``s3a://bucket/folder``.

    Examples
    --------
    >>> is_remote("s3a://bucket/folder"), is_remote("kafka://broker/topic"), is_remote("C:/folder"), is_remote("a/b")
    (True, True, False, False)
    """
    return ADDRESS.match(str(place)) is not None


def is_stored(place: object) -> bool:
    """Return whether a place is in an object store that is read and written here.

    Examples
    --------
    >>> is_stored("s3://bucket/folder"), is_stored("kafka://broker/topic"), is_stored("folder")
    (True, False, False)
    """
    found = ADDRESS.match(str(place))
    return found is not None and found[1].lower() in STORES


def place_of(given: str | os.PathLike[str]) -> Path:
    """Return a path; of an address one that keeps its text, of an object one that stands for it.

    Parameters
    ----------
    given : str or path
        A ``Path`` that was made of ``s3://bucket/key`` has lost a slash: it is found again.

    Examples
    --------
    >>> str(place_of("found//x")), str(place_of("kafka://broker/topic")), str(place_of(Path("s3://bucket/key")) / "x")
    ('found/x', 'kafka://broker/topic', 's3://bucket/key/x')
    """
    if isinstance(given, Address):
        return given
    text = os.fspath(given)
    if not isinstance(text, str) or not is_remote(text):
        return Path(given)
    if is_stored(text):
        return _stored(text)
    address = Address(text)
    address.written = text
    return address


def _stored(text: str) -> StorePath:
    found = _PARTS.fullmatch(text)
    assert found is not None, "an address has parts"
    scheme, slashes, rest, query = found.groups()
    has_no_host = STORES[scheme.lower()] in ("hdfs", "viewfs") and len(slashes) == len("///")
    rest = re.sub("/+", "/", rest).strip("/")
    made = StorePath(f"{scheme}:/{rest}")
    made.written, made.query = f"{scheme}:{'///' if has_no_host else '//'}{rest}", query or ""
    return made


class Address(type(Path())):  # type: ignore[misc]
    """An address in the place of a file, as it was written: ``Path`` makes one slash of two, or of three.

    Examples
    --------
    >>> str(place_of("kafka:///found"))
    'kafka:///found'
    """

    written: str | None = None

    def __str__(self) -> str:
        return self.written or super().__str__()

    def __reduce__(self) -> tuple[Any, ...]:
        return place_of, (str(self),)


class StorePath(Address):
    """A place in an object store, where there may be an object, or a folder: objects whose names begin so.

    Settings of the store stand behind a question mark, as in ``s3://bucket/key?endpoint_override=host:9000``. Folders
    need not be made.
    """

    query: str = ""

    def __str__(self) -> str:
        return f"{self.written}{self.query}" if self.written is not None else super().__str__()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StorePath) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    @property
    def scheme(self) -> str:
        """What stands before the colon, as it was written."""
        return str(self.written).partition(":")[0]

    # --- names ------------------------------------------------------------------------------------------------

    def __truediv__(self, name: str | os.PathLike[str]) -> StorePath:
        return _stored(f"{self.written}/{os.fspath(name)}{self.query}")

    def joinpath(self, *names: str | os.PathLike[str]) -> StorePath:
        """The place of these names below this one."""
        return _stored(f"{self.written}/{'/'.join(os.fspath(name) for name in names)}{self.query}")

    @property
    def parent(self) -> StorePath:
        """The folder that it lies in; a bucket lies in itself."""
        scheme, slashes, rest = re.split("(:/+)", str(self.written), maxsplit=1)
        above = rest.rpartition("/")[0] or rest
        return _stored(f"{scheme}{slashes}{above}{self.query}")

    def with_name(self, name: str) -> StorePath:
        """The place of another name in the same folder."""
        return self.parent / name

    def with_suffix(self, suffix: str) -> StorePath:
        """The place of the same name with another ending."""
        return self.with_name(f"{self.stem}{suffix}")

    def absolute(self) -> StorePath:
        """Itself."""
        return self

    def resolve(self, strict: bool = False) -> StorePath:  # noqa: ARG002
        """Itself: no links lead to it."""
        return self

    def as_uri(self) -> str:
        """Its address."""
        return str(self)

    # --- what is there ----------------------------------------------------------------------------------------

    def _info(self) -> Any:
        with asking(self):
            files, path = self._opened()
            found = files.get_file_info(path)
        if found.type == _kinds().NotFound:
            _check_bucket(self)
        return found

    def _opened(self) -> tuple[Any, str]:
        """The store, and what this place is called there."""
        scheme, slashes, rest = re.split("(:/+)", str(self.written), maxsplit=1)
        host, _, path = ("", "", rest) if slashes == ":///" else rest.partition("/")
        files, root = _open_store(STORES[scheme.lower()], host, self.query, os.getpid(), _settings())
        return files, f"{root.rstrip('/')}/{path}" if path else root

    def exists(self) -> bool:
        """Whether there is an object, or a folder."""
        return bool(self._info().type != _kinds().NotFound)

    def check(self) -> None:
        """Refuse a place before anything is computed that is to be put there.

        Raises
        ------
        PlaceError
            ``ACEP-H010``: the store cannot be reached; ``ACEP-H011``: there is no such bucket; ``ACEP-H013``: the
            address is wrong. Who may put objects without looking at them is let pass.
        """
        try:
            self.exists()
        except PlaceError as error:
            if error.code != REFUSED:
                raise

    def is_file(self) -> bool:
        """Whether there is an object."""
        return bool(self._info().type == _kinds().File)

    def is_dir(self) -> bool:
        """Whether there are objects below it."""
        return bool(self._info().type == _kinds().Directory)

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:  # noqa: ARG002
        """What the store knows of an object: its size, and when it was written.

        Raises
        ------
        FileNotFoundError
            It is not there.
        """
        found = self._info()
        if found.type == _kinds().NotFound:
            raise FileNotFoundError(2, "no such object", str(self))
        mode = stat.S_IFREG if found.type == _kinds().File else stat.S_IFDIR
        when = found.mtime_ns or 0
        seconds = when // 1_000_000_000
        fields = (mode, 0, 0, 1, 0, 0, found.size or 0, seconds, seconds, seconds)
        return os.stat_result(fields, {"st_mtime": when / 1e9, "st_mtime_ns": when})

    def objects(self, *, recursive: bool) -> list[tuple[str, bool]]:
        """The names in a folder, those below its folders as ``folder/name``, and whether each is an object."""
        from pyarrow.fs import FileSelector

        with asking(self):
            files, path = self._opened()
            try:
                found = files.get_file_info(FileSelector(path, recursive=recursive))
            except FileNotFoundError:
                return []
        start = len(path.rstrip("/")) + 1
        return sorted((one.path[start:], one.type == _kinds().File) for one in found)

    def iterdir(self) -> Iterator[StorePath]:
        """What lies in a folder."""
        return iter([self / name for name, _ in self.objects(recursive=False)])

    def glob(self, pattern: str) -> Iterator[StorePath]:
        """What lies in a folder under names that fit."""
        return iter([one for one in self.iterdir() if fnmatchcase(one.name, pattern)])

    def rglob(self, pattern: str) -> Iterator[StorePath]:
        """The objects below a folder under names that fit."""
        names = (name for name, is_object in self.objects(recursive=True) if is_object)
        return iter([self / name for name in names if fnmatchcase(name.rpartition("/")[2], pattern)])

    # --- what is in it ----------------------------------------------------------------------------------------

    def native(self) -> Any:
        """The object as a file of Arrow, to be read anywhere in it."""
        with asking(self):
            files, path = self._opened()
            try:
                return files.open_input_file(path)
            except FileNotFoundError:
                _check_bucket(self)
                raise FileNotFoundError(2, "no such object", str(self)) from None

    def open(self, mode: str = "r", *_: Any, **__: Any) -> IO[Any]:
        """Open the object, to be read as bytes."""
        if mode != "rb":
            raise io.UnsupportedOperation(f"{self}: an object is put as a whole")
        return io.BufferedReader(_Reader(self), BUFFER)

    def read_bytes(self) -> bytes:
        """All of the object."""
        with asking(self), self.native() as file:
            return bytes(file.read())

    def read_text(self, encoding: str | None = None, errors: str | None = None) -> str:
        """All of the object, as text."""
        return self.read_bytes().decode(encoding or "utf-8", errors or "strict")

    def write_bytes(self, data: Any) -> int:
        """Put an object: all of it, in the place of one that is there."""
        import pyarrow as pa

        with asking(self):
            files, path = self._opened()
            sink = files.open_output_stream(path, compression=None)
            held = pa.py_buffer(data)
            sink.write(held)  # all at once: what is closed is whole
            sink.close()
        return int(held.size)

    def write_text(self, data: str, encoding: str | None = None, *_: Any, **__: Any) -> int:
        """Put an object of a text."""
        return self.write_bytes(data.encode(encoding or "utf-8"))

    def put(self, file: BinaryIO) -> None:
        """Put an object of what a file of this machine holds."""
        file.flush()
        if not os.fstat(file.fileno()).st_size:
            self.write_bytes(b"")
            return
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as held:
            self.write_bytes(held)

    def copy(self, other: StorePath) -> None:
        """Let the store copy the object to another place in it."""
        with asking(self):
            files, path = self._opened()
            files.copy_file(path, other._opened()[1])

    def mkdir(self, *_: Any, **__: Any) -> None:
        """Nothing: folders are there as soon as objects lie in them."""

    def unlink(self, missing_ok: bool = False) -> None:
        """Delete the object."""
        with asking(self):
            files, path = self._opened()
            try:
                files.delete_file(path)
            except FileNotFoundError:
                if not missing_ok:
                    raise

    def remove_tree(self) -> None:
        """Delete all objects below a folder, if there are any."""
        with asking(self):
            files, path = self._opened()
            try:
                files.delete_dir(path)
            except FileNotFoundError:
                return


class _Reader(io.RawIOBase):
    """The bytes of an object, whose store may fail meanwhile."""

    def __init__(self, place: StorePath) -> None:
        self._place = place
        self._file = place.native()

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        with asking(self._place):
            return int(self._file.readinto(buffer))

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        return int(self._file.seek(offset, whence))

    def tell(self) -> int:
        return int(self._file.tell())

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()


# --- either kind ----------------------------------------------------------------------------------------------------


def remove(place: Path) -> None:
    """Delete a file, or a folder with all that is in it, as far as that is possible."""
    if isinstance(place, StorePath):
        place.unlink(missing_ok=True) if place.is_file() else place.remove_tree()
    elif place.is_dir():
        shutil.rmtree(place, ignore_errors=True)
    else:
        place.unlink(missing_ok=True)


# --- stores -----------------------------------------------------------------------------------------------------------


def _kinds() -> Any:
    from pyarrow.fs import FileType

    return FileType


def _settings() -> tuple[tuple[str, str], ...]:
    """What the environment says of stores: another answer is another store."""
    return tuple(sorted((name, value) for name, value in os.environ.items() if name.startswith("AWS_")))


@lru_cache(maxsize=64)
def _open_store(
    scheme: str, host: str, query: str, _process: int, settings: tuple[tuple[str, str], ...]
) -> tuple[Any, str]:
    """The store of a bucket and what the bucket is called in it; a process that was forked opens its own."""
    from pyarrow.fs import FileSystem

    said = [query.removeprefix("?")] if query else []
    if scheme == "s3":
        if ":" in host.partition("@")[0] and "@" in host:
            raise PlaceError(
                "an address holds a secret key, which others would read in logs",
                code="ACEP-H013",
                hint="set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment, and leave them out",
            )
        said.append("allow_delayed_open=true")  # small objects are put by one request
        known = dict(settings)
        if url := known.get("AWS_ENDPOINT_URL_S3") if "endpoint_override=" not in query else None:
            protocol, _, endpoint = url.rpartition("://")
            said += [f"endpoint_override={endpoint}", f"scheme={protocol or 'https'}"]
    store, root = FileSystem.from_uri(f"{scheme}://{host}{'/' if host else '//'}{'?' if said else ''}{'&'.join(said)}")
    return store, cast(str, root)


@lru_cache(maxsize=64)
def _is_bucket(host: StorePath, _settings: tuple[tuple[str, str], ...]) -> bool:
    with asking(host):
        files, path = host._opened()
        return bool(files.get_file_info(path).type != _kinds().NotFound)


def _check_bucket(place: StorePath) -> None:
    """Tell a bucket that is not there from an object that is not.

    Raises
    ------
    PlaceError
        ``ACEP-H011``
    """
    top = place
    while str(top.parent) != str(top):
        top = top.parent
    if STORES[place.scheme.lower()] != "s3":
        return
    try:
        is_there = _is_bucket(top, _settings())
    except PlaceError as error:
        if error.code == REFUSED:  # objects may be looked at, but not the bucket
            return
        raise
    if not is_there:
        _is_bucket.cache_clear()  # somebody may make it
        raise _no_bucket(place)


def _no_bucket(place: StorePath) -> PlaceError:
    name = str(place.written).partition("://")[2].partition("/")[0]
    return PlaceError(
        f"{place.written}: there is no bucket {name!r}",
        code="ACEP-H011",
        hint=f"check its name and the endpoint (AWS_ENDPOINT_URL); or make it: aws s3 mb s3://{name}",
    )


@contextmanager
def asking(place: StorePath) -> Iterator[None]:
    """Tell of what a store refuses as a ``PlaceError``; what is not there stays a ``FileNotFoundError``."""
    import pyarrow as pa

    try:
        yield
    except FileNotFoundError:
        raise
    except (OSError, pa.ArrowException, ImportError) as error:
        raise fault(place, error) from error


def fault(place: StorePath, error: Exception) -> PlaceError:
    """The error that a store refuses something, made of what Arrow says."""
    said, where = str(error), place.written
    if re.search(_NO_BUCKET, said):
        return _no_bucket(place)
    if re.search(_REFUSED, said):
        return PlaceError(
            f"{where}: the store refuses it: {_short(said)}",
            code=REFUSED,
            hint="set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (or AWS_PROFILE), of somebody who may do this",
        )
    if re.search(_TROUBLE, said):
        return PlaceError(
            f"{where}: the store cannot be reached: {_short(said)}",
            code="ACEP-H010",
            hint="try again later; or check the endpoint and the region: AWS_ENDPOINT_URL, AWS_REGION",
            passes=True,
        )
    return PlaceError(
        f"{where}: the store does not do it: {_short(said)}",
        code="ACEP-H013",
        hint="check the address, and the settings of the store: AWS_ENDPOINT_URL, AWS_REGION",
    )


def _short(said: str) -> str:
    """The end of what Arrow says, which has the reason, without the number of the request."""
    said = re.sub(r"\s*\(Request ID: [^)]*\)", "", said)
    return said.partition("AWS Error ")[2] or said.splitlines()[0][:300] if said else "it gives no reason"
