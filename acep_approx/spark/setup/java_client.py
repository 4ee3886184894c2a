"""Settings of librdkafka in the words of Java's client of Kafka, which Spark uses."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from acep_approx.errors import UsageError

JAVA = "kafka."
"""How settings begin that only Java's client gets."""
CALLED = {
    "sasl.mechanisms": "sasl.mechanism",
    "fetch.wait.max.ms": "fetch.max.wait.ms",
    "ssl.ca.pem": "ssl.truststore.certificates",
    "ssl.certificate.pem": "ssl.keystore.certificate.chain",
    "ssl.key.pem": "ssl.keystore.key",
}
"""What Java's client calls otherwise."""
IN_FILES = {
    "ssl.ca.location": "ssl.ca.pem",
    "ssl.certificate.location": "ssl.certificate.pem",
    "ssl.key.location": "ssl.key.pem",
}
"""Settings that name files, and those that hold what is in them."""
IMPLIED = {
    "ssl.ca.pem": {"ssl.truststore.type": "PEM"},
    "ssl.key.pem": {"ssl.keystore.type": "PEM"},
    "ssl.keystore.location": {"ssl.keystore.type": "PKCS12"},
}
"""What Java's client must be told besides."""
LOGIN = ("sasl.username", "sasl.password")
UNKNOWN = ("enable.ssl.certificate.verification", "sasl.oauthbearer.config")
"""Settings that decide whom to trust, and of which Java's client has nothing."""


def java_settings(given: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Return settings for librdkafka, and the same for Java's client.

    Parameters
    ----------
    given : mapping of str to str
        Names of librdkafka; those that begin with ``kafka.`` are for Java's client alone, and go before. What both call
        alike, or only one of them knows, goes to both as it is.

    Raises
    ------
    UsageError
        ``ACEP-U137``: Java's client has nothing like a setting; a file cannot be read.

    Examples
    --------
    >>> ours, theirs = java_settings({"security.protocol": "SSL", "kafka.fetch.max.bytes": "1000"})
    >>> ours, theirs
    ({'security.protocol': 'SSL'}, {'security.protocol': 'SSL', 'fetch.max.bytes': '1000'})
    >>> _, theirs = java_settings({"sasl.mechanism": "PLAIN", "sasl.username": "ann", "sasl.password": "x"})
    >>> theirs["sasl.jaas.config"]
    'org.apache.kafka.common.security.plain.PlainLoginModule required username="ann" password="x";'
    """
    ours = {name: value for name, value in given.items() if not name.startswith(JAVA)}
    java = {name.removeprefix(JAVA): value for name, value in given.items() if name.startswith(JAVA)}
    for name in UNKNOWN:
        if name in ours:
            raise UsageError(
                f"{name} cannot be set with --spark: Java's client has nothing like it",
                code="ACEP-U137",
                hint="leave it out; whom to trust is said by ssl.ca.location",
            )
    plain = {IN_FILES.get(name, name): _content(value) if name in IN_FILES else value for name, value in ours.items()}
    found = {CALLED.get(name, name): value for name, value in plain.items() if name not in LOGIN}
    for name, more in IMPLIED.items():
        found |= more if name in plain else {}
    if found.get("ssl.endpoint.identification.algorithm") == "none":
        found["ssl.endpoint.identification.algorithm"] = ""
    if login := {name: plain[name] for name in LOGIN if name in plain}:
        found["sasl.jaas.config"] = _jaas(found.get("sasl.mechanism", ""), login)
    return ours, found | java


def _jaas(mechanism: str, login: Mapping[str, str]) -> str:
    r"""Return who reads, as Java's client is told it.

    Examples
    --------
    >>> _jaas("SCRAM-SHA-512", {"sasl.password": 'a"b'})
    'org.apache.kafka.common.security.scram.ScramLoginModule required password="a\\"b";'
    """
    module = "scram.ScramLoginModule" if mechanism.startswith("SCRAM") else "plain.PlainLoginModule"
    escaped = {name: value.replace("\\", "\\\\").replace('"', '\\"') for name, value in login.items()}
    said = " ".join(f'{name.removeprefix("sasl.")}="{value}"' for name, value in escaped.items())
    return f"org.apache.kafka.common.security.{module} required {said};"


def _content(file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text"
        raise UsageError(
            f"{file!r} cannot be read: {why}", code="ACEP-U137", hint="name a file of certificates or keys as PEM"
        ) from error
