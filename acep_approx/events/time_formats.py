"""Times written as text in other ways than ISO-8601: which way it is, and whole columns of it as timestamps.

How a column is written is a format in the words of ``strptime``. A day and a month are never guessed: where the values
fit both readings, both are named.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from acep_approx.arguments import check_fields
from acep_approx.arrays import Bools
from acep_approx.errors import DataError, UsageError, expect
from acep_approx.events.columns import to_numpy

LEAP_YEAR = 2000
"""In which times without a year are read at first."""
FOLDS = ("order", "earlier", "later")
MICROSECONDS = pa.timestamp("us")
MICROSECONDS_UTC = pa.timestamp("us", tz="UTC")

_PIECES = {
    "Y": r"(?P<Y>\d{4})",
    "y": r"(?P<y>\d{2})",
    "m": r"(?P<m>\d{1,2})",
    "d": r"(?P<d>\d{1,2})",
    "H": r"(?P<H>\d{1,2})",
    "I": r"(?P<I>\d{1,2})",
    "M": r"(?P<M>\d{2})",
    "S": r"(?P<S>\d{2})(?:[.,](?P<f>\d{1,9}))?",
    "p": r"(?P<p>[AaPp])\.?[Mm]\.?",
    "b": r"(?P<b>[A-Za-z]{3})[a-z]{0,6}\.?",
    "a": r"[A-Za-z]{2,9}\.?",
    "z": r"(?P<z>Z|UTC|GMT|UT|[+-]\d{2}:?\d{2})",
    "Z": r"(?P<Z>[A-Za-z]{1,5}|[+-]\d{2}:?\d{2})",
    "%": "%",
}
_TWO_DIGITS = ("m", "d", "H", "I")
_SAME = {"B": "b", "A": "a", "e": "d"}
_LONGER = {"T": "%H:%M:%S", "R": "%H:%M", "F": "%Y-%m-%d", "D": "%m/%d/%y"}
_MONTHS = pa.StringArray.from_buffers(  # pa.array imports pandas
    12, pa.py_buffer(array("i", range(0, 39, 3))), pa.py_buffer(b"janfebmaraprmayjunjulaugsepoctnovdec")
)

_DATES = (
    *("%Y-%m-%d", "%Y/%m/%d", "%d %b %Y", "%d-%b-%Y", "%d/%b/%Y", "%b %d %Y", "%b %d, %Y"),
    *("%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%m.%d.%Y", "%d-%m-%Y", "%m-%d-%Y"),
)
_SHORT_DATES = ("%y/%m/%d", "%d/%m/%y", "%m/%d/%y", "%d.%m.%y", "%y-%m-%d", "%d-%m-%y", "%m-%d-%y", "%d-%b-%y")
_CLOCKS = ("%H:%M:%S", "%H:%M", "%I:%M:%S %p", "%I:%M %p")
_ZONES = ("", " %z", "%z")
KNOWN = (
    *_DATES[1:],  # the first is ISO-8601
    *(f"{date}{gap}{clock}{zone}" for date in _DATES for gap in " T" for clock in _CLOCKS for zone in _ZONES),
    *(f"{date}, {clock}" for date in _DATES for clock in _CLOCKS),
    *("%Y%m%dT%H%M%S", "%Y%m%dT%H%M%S%z", "%Y%m%d %H%M%S", "%Y%m%dT%H%M"),
    *(f"%Y%m%d{gap}{clock}" for gap in (" ", "-") for clock in ("%H:%M:%S", "%H:%M", "%H:%M:%S:%f")),
    *(f"{date} {clock}" for date in _SHORT_DATES for clock in _CLOCKS),
    *("%d-%b-%y", "%d-%b-%y %I.%M.%S %p"),  # of Oracle
    *("[%d/%b/%Y:%H:%M:%S %z]", "%d/%b/%Y:%H:%M:%S %z", "[%d/%b/%Y:%H:%M:%S]", "%d/%b/%Y:%H:%M:%S"),
    *("%a, %d %b %Y %H:%M:%S %z", "%a, %d %b %Y %H:%M:%S", "%a %b %d %H:%M:%S %Y", "%a %b %d %H:%M:%S %z %Y"),
    *(f"{date} %H:%M:%S %Z" for date in _DATES),
    *("%a %b %d %H:%M:%S %Z %Y", "%a, %d %b %Y %H:%M:%S %Z"),
    *("%b %d %H:%M:%S", "%b %d %H:%M"),
    *(f"{date} %H:%M:%S" for date in ("%m-%d", "%d-%m", "%m/%d", "%d/%m", "%m.%d", "%d.%m")),
)
"""Formats that are found without being told."""


@dataclass(frozen=True)
class TimeFormat:
    """How times are written, as far as it is said.

    Parameters
    ----------
    text : str, optional
        In the words of ``strptime``, such as ``%d/%m/%Y %H:%M``. ``%S`` takes fractions of a second too. Default:
        found out.
    zone : str, optional
        Name of the time zone of times that have none, such as ``Europe/Vienna``. Default: UTC.
    year : int, optional
        Of times without a year, as in the lines of syslog: that of the first event. Where times go back from December
        to January, the next year begins.
    fold : {"order", "earlier", "later"}, optional
        Which one a local time is that occurs twice, as clocks are set back: the first one until times go back, or
        always the one. Default: as the order of the events tells; where it does not, such a time is refused.

    Raises
    ------
    UsageError
        ``ACEP-U117``: not such a format; ``ACEP-U118``: no such time zone; ``ACEP-U210``: no such ``fold``.

    Examples
    --------
    >>> TimeFormat("%d.%m.%Y %H:%M", zone="Europe/Vienna")
    TimeFormat(text='%d.%m.%Y %H:%M', zone='Europe/Vienna', year=None, fold=None)
    """

    text: str | None = None
    zone: str | None = None
    year: int | None = None
    fold: str | None = None

    def __post_init__(self) -> None:
        check_fields(self)
        if self.text is not None:
            _pattern(self.text)
        if self.zone is not None:
            from zoneinfo import ZoneInfo

            try:
                ZoneInfo(self.zone)
            except (KeyError, ValueError, OSError) as error:
                raise UsageError(
                    f"there is no time zone {self.zone!r}",
                    code="ACEP-U118",
                    hint="name it as in Europe/Vienna, America/New_York, UTC",
                ) from error
        if self.fold not in (None, *FOLDS):
            raise UsageError(
                f"there is no way {self.fold!r} to tell which one of two times is meant",
                code="ACEP-U210",
                hint=f"say one of {', '.join(FOLDS)}",
            )

    @classmethod
    def of(cls, given: Any) -> TimeFormat | None:
        """What users write as one: None, the text of a format, or one of these.

        Raises
        ------
        UsageError
            ``ACEP-U117``, ``ACEP-U118``, or it is of another type.
        """
        if given is None or isinstance(given, cls):
            return None if given == cls() else given
        if isinstance(given, dict) and {*given} <= {*cls.__dataclass_fields__}:  # as a state that was saved holds it
            return cls(**given)
        expect("time_format", given, str, "a text such as '%d/%m/%Y %H:%M', or a TimeFormat")
        return cls(given)

    @classmethod
    def plain(cls, given: Any) -> dict[str, Any]:
        """The argument ``time_format`` in values that a state can hold; none where there is none."""
        written = cls.of(given)
        return {} if written is None else {"time_format": vars(written)}

    @property
    def has_year(self) -> bool:
        """Whether the text of a time, with what is said, tells its year."""
        return not self.is_yearless or self.year is not None

    @property
    def is_utc(self) -> bool:
        """Whether times are in UTC when they are read: the text or the format has a zone."""
        return self.zone is not None or bool({"z", "Z"} & self._groups.keys())

    @property
    def is_local(self) -> bool:
        """Whether times are those of a zone that their text does not name."""
        return self.zone is not None and not {"z", "Z"} & self._groups.keys()

    @property
    def is_yearless(self) -> bool:
        """Whether the text of a time has no year."""
        return self.text is not None and not {"Y", "y"} & self._groups.keys()

    @property
    def which_of_two(self) -> str:
        """Which one is meant of a local time that occurs twice, where no other times are known; for ``localized``."""
        return {"earlier": "earliest", "later": "latest"}.get(str(self.fold), "raise")

    @property
    def is_in_order(self) -> bool:
        """Whether times need those before them to be known."""
        return self.is_yearless or self.is_local

    def is_like(self, said: TimeFormat) -> bool:
        """Whether this is what was said of it."""
        pairs = zip(vars(said).values(), vars(self).values(), strict=True)
        return all(wanted is None or wanted == value for wanted, value in pairs)

    @property
    def order(self) -> str | None:
        """What stands first, the day or the month, where both are numbers; None: it is plain."""
        groups = list(self._groups)
        if "m" not in groups or groups[0] == "Y":
            return None
        if groups[0] == "y":
            return "the year first"
        return "the day first" if groups.index("d") < groups.index("m") else "the month first"

    def __str__(self) -> str:
        said = [self.text or "ISO-8601"]
        said += [f"in {self.zone}"] if self.zone else []
        said += [f"from {self.year} on"] if self.year and self.is_yearless else []
        return " ".join(said)

    @property
    def pattern(self) -> str:
        """The regular expression of times written so, without groups of its own."""
        return re.sub(r"\(\?P<\w+>", "(?:", _pattern(self.text or "").pattern)

    @property
    def is_of_digits(self) -> bool:
        """Whether times are written so as whole numbers: ``20240331`` as ``%Y%m%d``."""
        return re.fullmatch("(%[YymdHMS]|%S[.,]?%f)+", self.text or "") is not None

    @property
    def _groups(self) -> dict[str, int]:
        return {} if self.text is None else dict(_pattern(self.text).groupindex)


def digits_format(least: float, most: float) -> str | None:
    """The format in which whole numbers are times written as digits, where the least and the greatest are such.

    Examples
    --------
    >>> digits_format(20240331, 20240401), digits_format(20240328093000, 20240328093100), digits_format(1, 20240401)
    ('%Y%m%d', '%Y%m%d%H%M%S', None)
    """
    if most < _LEAST_DIGITS:
        return None
    for text, pattern in _DIGITS.items():
        if _is_in_digits(least, pattern) and _is_in_digits(most, pattern):
            return text
    return None


_DIGITS = {
    "%Y%m%d": r"(19[5-9]|20\d)\d(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])",
    "%Y%m%d%H%M": r"(19[5-9]|20\d)\d(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])([01]\d|2[0-3])[0-5]\d",
    "%Y%m%d%H%M%S": r"(19[5-9]|20\d)\d(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])([01]\d|2[0-3])[0-5]\d[0-5]\d",
}
_LEAST_DIGITS = 19_500_100
"""Times written as digits, from 1950 to 2099. Numbers of ten digits may as well be seconds since 1970."""


def _is_in_digits(number: float, pattern: str) -> bool:
    return 0 < number < 10**15 and re.fullmatch(pattern, f"{number:.0f}") is not None


def written_numbers(column: pa.Array) -> pa.Array:
    """Numbers as texts, as people write them: whole ones without a point."""
    if not pa.types.is_floating(column.type):
        return column.cast(pa.string())
    values = column.to_pylist()
    texts = [None if value is None else f"{value:.0f}" if value.is_integer() else repr(value) for value in values]
    return pa.array(texts, pa.string())


def are_iso(texts: pa.Array, unit: str) -> bool:
    """Whether all texts are times as ISO-8601 has them, all with a zone or all without, that fit ``unit``."""
    for zone in (None, "UTC"):
        try:
            texts.cast(pa.timestamp(unit, tz=zone))
        except pa.ArrowInvalid:
            continue
        return True
    return False


def guesses(texts: pa.Array) -> list[str]:
    """The known formats that fit all of some texts; several where they do not tell days from months.

    Parameters
    ----------
    texts : pyarrow.Array of string
        Without nulls.

    Returns
    -------
    list of str
        Empty where no known format fits.

    Examples
    --------
    >>> guesses(pa.array(["31/01/2013 17:45"])), guesses(pa.array(["01/02/2013 17:45"]))
    (['%d/%m/%Y %H:%M'], ['%d/%m/%Y %H:%M', '%m/%d/%Y %H:%M'])
    """
    if not len(texts):
        return []
    first = texts[0].as_py().strip()
    if len(first) > _LONGEST or _DATE.search(first) is None:  # most texts are none, and formats cost time to compile
        return []
    found = [known for known in KNOWN if _pattern(known).fullmatch(first) and _fits(texts, known)]
    plainer = {known: known.removesuffix(":%f").replace("%Z", "%z") for known in found}
    return [known for known in found if plainer[known] == known or plainer[known] not in found]


_LONGEST = 60
"""Letters of a time."""
_DATE = re.compile(
    r"\d{1,4}[-/. ][A-Za-z\d]{1,9}[-/.,]?[-/. :]\d{2}|\d{8}[T \-]+\d\d:?\d\d|[A-Z][a-z]{2,8}\.? +\d{1,2},? +\d"
)
"""What every time has in it."""


def _fits(texts: pa.Array, text: str) -> bool:
    try:
        parse_times(texts, TimeFormat(text, year=LEAP_YEAR))
    except UnknownZoneError:
        return True
    except pa.ArrowInvalid:
        return False
    return True


def parse_times(texts: pa.Array, format: TimeFormat, ambiguous: str = "raise") -> pa.Array:  # noqa: A002  (what it is)
    """Texts of one format as timestamps of microseconds: in UTC where the text or the format has a zone.

    Finer fractions are rounded down.

    Parameters
    ----------
    texts : pyarrow.Array of string
    format : TimeFormat
        With a ``text``, and a year if that has none.
    ambiguous : {"raise", "earliest", "latest"}
        As of ``localized``.

    Raises
    ------
    pyarrow.ArrowInvalid
        A text is not of the format, or is no time; a local time that occurs twice, or never.

    Examples
    --------
    >>> parse_times(pa.array(["31.01.2013 17:45:00.25"]), TimeFormat("%d.%m.%Y %H:%M:%S"))[0].as_py()
    datetime.datetime(2013, 1, 31, 17, 45, 0, 250000)
    """
    pattern = _pattern(format.text or "")
    found = pc.extract_regex(pc.utf8_trim_whitespace(texts), pattern=f"^(?:{pattern.pattern})$")
    if found.null_count > texts.null_count:
        raise pa.ArrowInvalid(f"not a time written as {format.text}")
    fields = {name: pc.struct_field(found, name) for name in pattern.groupindex}
    minute, second = (_padded(fields.get(name, "00")) for name in "MS")
    fraction = pc.utf8_slice_codeunits(pc.utf8_rpad(fields["f"], 6, "0"), 0, 6) if "f" in fields else "000000"
    pieces = (*_date(fields, format), "T", _hour(fields), ":", minute, ":", second, ".", fraction, "")
    try:
        times = pc.binary_join_element_wise(*map(_one, pieces)).cast(MICROSECONDS)
    except pa.ArrowInvalid as error:
        raise pa.ArrowInvalid(f"no such day or hour, written as {format.text}") from error
    if "z" in fields:
        return _less_offset(times, fields["z"])
    if "Z" in fields:
        return _of_letters(times, fields["Z"], format.zone)
    return times if format.zone is None else localized(times, format.zone, ambiguous)


def parse_alone(texts: pa.Array, format: TimeFormat) -> pa.Array:  # noqa: A002
    """The same of times that need those before them: in ``LEAP_YEAR`` without a year; the first one that is possible.

    ``TimesInOrder.resolved`` gives what they are.
    """
    if format.is_yearless:
        times = parse_times(texts, TimeFormat(format.text, year=LEAP_YEAR))
        return times if format.zone is None else times.cast(MICROSECONDS_UTC)
    return parse_times(texts, format, ambiguous="earliest")


def localized(times: pa.Array, zone: str, ambiguous: str = "raise") -> pa.Array:
    """Local times of a zone in UTC.

    Parameters
    ----------
    times : pyarrow.Array
    zone : str
    ambiguous : {"raise", "earliest", "latest"}
        Which one is meant where a time occurs twice.

    Raises
    ------
    pyarrow.ArrowInvalid
        A time occurs twice, or never, because clocks are set.
    """
    try:
        return pc.assume_timezone(times, zone, ambiguous=ambiguous, nonexistent="raise").cast(
            pa.timestamp(times.type.unit, tz="UTC")
        )
    except pa.ArrowInvalid as error:
        found = re.search(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", str(error))
        which = f"the local time {found.group()}" if found else "a local time"
        often = "twice or never" if ambiguous == "raise" else "never"
        raise pa.ArrowInvalid(f"{which} of {zone} occurs {often}, because clocks are set") from error


def occurs(local: pa.Array, zone: str) -> Bools:
    """Which local times of a zone occur at all: clocks that are set forward pass over some."""
    found = pc.assume_timezone(local, zone, ambiguous="earliest", nonexistent="earliest")
    return to_numpy(pc.equal(pc.local_timestamp(found), local))


class UnknownZoneError(pa.ArrowInvalid):  # type: ignore[misc]
    """Times end in letters that may name several zones, and nothing says which one is meant."""


class OtherZoneError(pa.ArrowInvalid):  # type: ignore[misc]
    """Times end in letters that are not those of the zone that is said."""


def _of_letters(times: pa.Array, letters: pa.Array, zone: str | None) -> pa.Array:
    """Local times whose zone is named by letters in UTC."""
    is_utc = pc.match_substring_regex(letters, r"^(Z|UTC|GMT|UT|[+-]\d\d:?\d\d)$")
    others = pc.unique(letters.filter(pc.invert(is_utc))).drop_null().to_pylist()
    if not others:
        return _less_offset(times, letters)
    if zone is None:
        raise UnknownZoneError(
            f"{', '.join(others[:3])} may be the name of several zones: say which one is meant, by --time-zone"
        )
    first, second = (localized(times, zone, ambiguous=which) for which in ("earliest", "latest"))
    is_first, is_second = (_are_called(found, zone, letters) for found in (first, second))
    known = pc.or_(is_utc, pc.or_(is_first, is_second))
    if pc.any(pc.invert(known)).as_py():
        wrong = pc.index(known, False).as_py()
        raise OtherZoneError(
            f"{letters[wrong].as_py()} is not what {zone} is called at that time; if it is another zone, write the "
            "letters in --time-format, and name that: --time-zone Etc/GMT+5"
        )
    return pc.if_else(is_utc, _less_offset(times, letters), pc.if_else(is_first, first, second))


def _are_called(times: pa.Array, zone: str, letters: pa.Array) -> pa.Array:
    return pc.equal(pc.strftime(times.cast(pa.timestamp(times.type.unit, tz=zone)), format="%Z"), letters)


def _date(fields: dict[str, Any], format: TimeFormat) -> Iterator[Any]:  # noqa: A002
    if "Y" in fields:
        yield fields["Y"]
    elif "y" in fields:
        is_past = pc.greater_equal(fields["y"], "69")  # as strptime has it
        yield pc.if_else(is_past, "19", "20")
        yield fields["y"]
    else:
        yield f"{format.year:04}"
    yield "-"
    if "b" in fields:
        month = pc.add(pc.index_in(pc.utf8_lower(fields["b"]), _MONTHS), 1)
        if month.null_count > fields["b"].null_count:
            raise pa.ArrowInvalid(f"not a time written as {format.text}: no such month")
        yield _padded(month.cast(pa.string()))
    else:
        yield _padded(fields["m"])
    yield "-"
    yield _padded(fields["d"]) if "d" in fields else "01"


def _hour(fields: dict[str, Any]) -> Any:
    if "I" not in fields:
        return _padded(fields.get("H", "00"))
    hour = fields["I"].cast(pa.int8())
    if pc.any(pc.or_(pc.greater(hour, 12), pc.less(hour, 1))).as_py():
        raise pa.ArrowInvalid("an hour of AM or PM is from 1 to 12")
    is_noon = pc.equal(hour, 12)
    from_noon = pc.if_else(is_noon, 0, hour)
    is_late = pc.equal(pc.utf8_lower(fields["p"]), "p")
    return _padded(pc.if_else(is_late, pc.add(from_noon, 12), from_noon).cast(pa.string()))


def _one(value: Any) -> Any:
    """A column, or one text or number of its type; to guess the type pyarrow would import pandas."""
    types = {str: pa.string(), int: pa.int64()}
    return pa.scalar(value, types[type(value)]) if type(value) in types else value


def _padded(text: Any) -> Any:
    return text if isinstance(text, str) else pc.utf8_lpad(text, 2, "0")


def _less_offset(times: pa.Array, zones: pa.Array) -> pa.Array:
    parts = pc.extract_regex(zones, pattern=r"^(?P<sign>[+-])(?P<hours>\d{2}):?(?P<minutes>\d{2})$")
    hours, minutes = (pc.struct_field(parts, name).cast(pa.int64()) for name in ("hours", "minutes"))
    offset = pc.multiply(pc.add(pc.multiply(hours, _one(60)), minutes), _one(60_000_000))
    is_west = pc.equal(pc.struct_field(parts, "sign"), _one("-"))
    offset = pc.fill_null(pc.if_else(is_west, pc.negate(offset), offset), 0)
    return pc.subtract(times.cast(pa.int64()), offset).cast(MICROSECONDS_UTC)


@lru_cache(maxsize=2048)
def _pattern(text: str) -> re.Pattern[str]:
    """A format as a regular expression, which RE2 reads too."""
    whole = re.sub(r"%([TRFD])", lambda found: _LONGER[found.group(1)], text)
    sign = re.search(r"%S([^%A-Za-z0-9]?)%f", whole)
    whole = re.sub(r"%S[^%A-Za-z0-9]?%f", "%S", whole)
    second = _PIECES["S"]  # with its fraction, which is always welcome behind a point or a comma
    if sign is not None:
        second = second.replace("[.,]", f"[.,{re.escape(sign[1])}]") if sign[1] else r"(?P<S>\d{2})(?P<f>\d{1,9})"
    pattern, place, seen = "", 0, set[str]()
    for found in re.finditer(r"%(-?.)|\s+", whole):
        pattern += re.escape(whole[place : found.start()])
        place = found.end()
        if found.group(1) is None:
            pattern += r"\s+"
            continue
        name = found.group(1).removeprefix("-")
        name = _SAME.get(name, name)
        if name == "f":
            raise _no_format(text, "%f stands behind %S, as in %S.%f or %S:%f")
        if name not in _PIECES or (name in seen and name not in "a%"):
            raise _no_format(text, f"{found.group(0)} twice" if name in seen else f"there is no {found.group(0)}")
        seen.add(name)
        piece = second if name == "S" else _PIECES[name]
        is_beside = re.match("%-?[YymdHIMS]", whole[place:]) or re.search("%-?[YymdHIMS]$", whole[: found.start()])
        if name in _TWO_DIGITS and is_beside:  # digits of another piece stand directly beside those of this one
            piece = piece.replace("{1,2}", "{2}")
        pattern += piece
    pattern += re.escape(whole[place:])
    if not ({"m", "b"} & seen and "d" in seen):
        raise _no_format(text, "a day and a month are needed")
    if ("I" in seen) != ("p" in seen):
        raise _no_format(text, "%I and %p go together")
    return re.compile(pattern.replace(r"\ ", " "))


def _no_format(text: str, reason: str) -> UsageError:
    return UsageError(
        f"{text!r} is no format of times: {reason}",
        code="ACEP-U117",
        hint="write it as for strptime, for example '%d/%m/%Y %H:%M:%S'; "
        "there are %Y %y %m %b %d %H %I %p %M %S %f %z %Z %a",
    )


def unknown_zone(message: str) -> DataError:
    """The error for letters that name no one zone (``ACEP-D122``), to be raised by the caller."""
    return DataError(
        f"times end in letters: {message}",
        code="ACEP-D122",
        hint="name the zone: --time-zone America/New_York (time_format=TimeFormat(..., zone=...) in Python); "
        "it tells its letters apart, such as EST and EDT",
    )


def no_year(text: str) -> DataError:
    """The error for times without a year (``ACEP-D035``), to be raised by the caller."""
    return DataError(
        f"times written as {text!r} have no year",
        code="ACEP-D035",
        hint="say it: --time-year 2013 (time_format=TimeFormat(..., year=2013) in Python)",
    )
