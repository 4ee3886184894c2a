"""What ``kafka://broker:9092/topic?from=end`` says, and settings of the client."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

from acep_approx.errors import UsageError
from acep_approx.masks import masked_word
from acep_approx.visible import broken_at, visible

SCHEME = "kafka://"
PARTITION = "kafka_partition"
"""The column that says which partition a message is of."""
STARTS = ("beginning", "end")
OURS = frozenset(
    (
        *("bootstrap.servers", "metadata.broker.list", "group.id", "auto.offset.reset", "enable.partition.eof"),
        *("enable.auto.commit", "enable.auto.offset.store"),
    )
)
"""Settings that the address says, or that a run needs as they are."""
_NAME = re.compile(r"[A-Za-z][\w.-]*")


@dataclass(frozen=True)
class KafkaAddress:
    """A topic, and where to begin in it.

    Parameters
    ----------
    brokers : str
        Of which some are asked first: ``host:port``, with commas between them.
    topic : str
    group : str or None
        The consumer group under whose name offsets are committed, and found again.
    start : str
        ``beginning`` or ``end``: where to begin, where no offset is known.
    partitions : tuple of int
        Which are read; empty: all.
    headers : tuple of str
        Names of headers of messages that become columns.

    Examples
    --------
    >>> parse_address("kafka://one:9092,two:9092/orders?group=acep&from=end&partition=0,2")
    KafkaAddress(brokers='one:9092,two:9092', topic='orders', group='acep', start='end', partitions=(0, 2), headers=())
    """

    brokers: str
    topic: str
    group: str | None = None
    start: str = "beginning"
    partitions: tuple[int, ...] = ()
    headers: tuple[str, ...] = ()


def is_address(text: object) -> bool:
    """Whether an input is a topic of Kafka."""
    return isinstance(text, str) and text.lower().startswith(SCHEME)


def parse_address(text: str) -> KafkaAddress:
    """The topic that an address names.

    Raises
    ------
    UsageError
        ``ACEP-U136``: it is not as it must be.
    """
    if not _is_plain(text) or not _is_plain(unquote(text)):
        raise _wrong(text, "it holds characters that no name has")
    try:
        parts = urlsplit(text)
    except ValueError as error:
        raise _wrong(text, "its broker cannot be read") from error
    topic = unquote(parts.path.strip("/"))
    if not parts.netloc or "@" in parts.netloc or not topic or "/" in topic or parts.fragment:
        is_login = "@" in parts.netloc
        raise _wrong(text, "it holds a user" if is_login else "it names no broker, or no topic, or more than that")
    given = parse_qsl(parts.query, keep_blank_values=True)
    said = dict(given)
    unknown = sorted(said.keys() - {"group", "from", "partition", "headers"})
    if unknown or len(said) < len(given) or not all(said.values()):
        raise _wrong(text, f"{unknown[0]!r} says nothing here" if unknown else "a setting is empty, or given twice")
    start = said.get("from", "beginning")
    if start not in STARTS:
        raise _wrong(text, f"from={start} is neither beginning nor end")
    numbers = said.get("partition", "")
    partitions = numbers.split(",") if numbers else []
    if not all(one.isascii() and one.isdigit() for one in partitions) or len(set(partitions)) < len(partitions):
        raise _wrong(text, f"partition={numbers} is no list of different numbers")
    headers = tuple(filter(None, said.get("headers", "").split(",")))
    if len(set(headers)) < len(headers):
        raise _wrong(text, f"headers={said['headers']} names one twice")
    return KafkaAddress(parts.netloc, topic, said.get("group"), start, tuple(sorted(map(int, partitions))), headers)


def parse_target(text: str) -> KafkaAddress:
    """Return the topic of an address to which messages are written.

    Raises
    ------
    UsageError
        ``ACEP-U136``: it is not as it must be, or says how the topic is read.

    Examples
    --------
    >>> parse_target("kafka://broker:9092/found").topic
    'found'
    """
    if "?" in text:
        raise _wrong(text, "what stands behind ? is about reading, and this topic is written")
    return parse_address(text)


def _wrong(text: str, why: str) -> UsageError:
    return UsageError(
        f"{masked_word(text)!r} is no topic of Kafka: {why}",
        code="ACEP-U136",
        hint="write kafka://BROKER:9092/TOPIC, and if you like ?group=NAME&from=beginning|end&partition=0,1"
        "&headers=NAME; who reads it is said by --kafka-option @client.properties",
    )


def settings(given: Sequence[str] | Mapping[str, object]) -> dict[str, str]:
    """Settings of the client by name.

    Parameters
    ----------
    given : sequence of str, or mapping
        Each ``name=value``, or ``@FILE``: a file of such lines, with ``#`` before comments.

    Raises
    ------
    UsageError
        ``ACEP-U137``: one is not so, is given twice, or is not for users to choose; the file cannot be read.

    Examples
    --------
    >>> settings(["security.protocol=SASL_SSL", "sasl.mechanism=PLAIN"])
    {'security.protocol': 'SASL_SSL', 'sasl.mechanism': 'PLAIN'}
    """
    if isinstance(given, Mapping):
        pairs = [(str(name), str(value)) for name, value in given.items()]
    else:
        pairs = [pair for one in given for pair in (_in_file(one[1:]) if one.startswith("@") else [_pair(one)])]
    found: dict[str, str] = {}
    for name, value in pairs:
        if not _is_plain(name) or "\0" in value or broken_at(value) is not None:
            raise _no_setting(f"{visible(name)} cannot be set: it, or its value, holds characters that no setting has")
        if name in OURS:
            raise _no_setting(f"{name} cannot be set: the address says it, or the run needs it as it is")
        if name in found:
            raise _no_setting(f"{name} is given twice")
        found[name] = value
    return found


def _is_plain(text: str) -> bool:
    """Whether the client, which is written in C, can take a text."""
    return broken_at(text) is None and not any(one < " " or one == "\x7f" for one in text)


def _pair(line: str, where: str = "a setting") -> tuple[str, str]:
    """The name and the value; what is not so may be a secret, and is not shown."""
    name, is_there, value = line.partition("=")
    if not is_there or not _NAME.fullmatch(name.strip()):
        raise _no_setting(f"{where} is not NAME=VALUE")
    return name.strip(), value.strip()


def _in_file(file: str) -> list[tuple[str, str]]:
    try:
        lines = [line.strip() for line in Path(file).read_text(encoding="utf-8").splitlines()]
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text, or no file has such a name"
        raise _no_setting(f"{file!r} cannot be read: {why}") from error
    numbered = enumerate(lines, 1)
    return [_pair(line, f"line {n} of {file!r}") for n, line in numbered if line and not line.startswith("#")]


def _no_setting(what: str) -> UsageError:
    return UsageError(
        what,
        code="ACEP-U137",
        hint="give settings of librdkafka: --kafka-option security.protocol=SSL, or a file of them: "
        "--kafka-option @client.properties",
    )
