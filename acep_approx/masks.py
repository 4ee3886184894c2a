"""Secrets in what is shown: which settings are secret, and addresses without their passwords."""

from __future__ import annotations

import re
from collections.abc import Mapping

MASK = "***"
_SECRET = re.compile(
    r"pass(?!ive|age|ed|es|ing)|pwd|secret|token|credential|jaas|oauthbearer|keytab|kinit|keystore|private|user\.?info"
    r"|signature|(?:^|[._-])(?:api|access|ssl|auth)?[._-]?key(?:[._-]|$)|(?:^|[._-])auth(?:[._-]|$)|apikey",
    re.IGNORECASE,
)
_USER = re.compile(r"(\b[A-Za-z][\w+.-]+:/)(?:(/)[^\s/?#'\"]*|[^\s/?#'\":]*:[^\s/?#'\"]*)@")
"""``Path`` makes one slash of two."""
_USER_WITH_SLASHES = re.compile(r"(?<=:/)(/?)[^\s/?#'\":@]*:(?!\d+(?:[/?#,'\"\s]|$))[^\s'\"]*@")
_PARAMETER = re.compile(r"(?<=[?&;#])([^\s=&;#'\"]+)=([^\s&;#'\"]+)")
_SETTING = re.compile(
    r"(?<![\w.])((?:sasl|ssl|basic\.auth|schema\.registry)\.[\w.-]+)(\s*=\s*)([^\s'\"]+)", re.IGNORECASE
)


def is_secret(name: str) -> bool:
    """Whether a setting of this name holds a secret, such as ``sasl.password``, ``ssl.key.pem`` or ``api-key``.

    Examples
    --------
    >>> [is_secret(name) for name in ("sasl.password", "ssl.key.pem", "security.protocol", "group", "monkey")]
    [True, True, False, False, False]
    """
    return _SECRET.search(name) is not None


def masked(text: str) -> str:
    """A text with ``***`` for the secrets in its addresses, and for secret settings of the client of Kafka.

    Examples
    --------
    >>> masked("'kafka://ann:p%40ss@host:9092/orders?from=end' and https://host/a?token=9f&page=2")
    "'kafka://***@host:9092/orders?from=end' and https://host/a?token=***&page=2"
    """
    if ":/" in text:
        text = _USER.sub(rf"\1\2{MASK}@", text)
        text = _USER_WITH_SLASHES.sub(rf"\1{MASK}@", text)
        text = _PARAMETER.sub(lambda found: f"{found[1]}={MASK}" if is_secret(found[1]) else found[0], text)
    if "." in text and "=" in text:
        text = _SETTING.sub(lambda found: f"{found[1]}{found[2]}{MASK}" if is_secret(found[1]) else found[0], text)
    return text


def masked_word(word: str) -> str:
    """A setting ``NAME=VALUE`` or an address of which all is known, so that a secret may have blanks and quotes.

    Examples
    --------
    >>> masked_word("kafka://ann:a b@host/orders"), masked_word("sasl.password=a b"), masked_word("my events.csv")
    ('kafka://***@host/orders', 'sasl.password=***', 'my events.csv')
    """
    name, is_setting, _ = word.partition("=")
    if is_setting and re.fullmatch(r"\s*[\w.-]+\s*", name) and is_secret(name):
        return f"{name}={MASK}"
    scheme, is_address, rest = word.partition("://")
    if is_address and re.fullmatch(r"[\w.+-]+", scheme):
        path = re.search(r"[/?#]", rest)
        if "@" in rest and ("@" in rest[: path.start() if path else None] or ":" in rest.partition("@")[0]):
            rest = f"{MASK}@{rest.rpartition('@')[2]}"
        return masked(f"{scheme}://{rest}")
    return masked(word)


def without(text: str, settings: Mapping[str, object]) -> str:
    """A text of another program with ``***`` where it shows the value of a secret setting.

    Examples
    --------
    >>> without('Invalid value "hunter2"', {"sasl.password": "hunter2", "client.id": "acep"})
    'Invalid value "***"'
    """
    values = {str(value) for name, value in settings.items() if is_secret(name)}
    for value in sorted(filter(None, values), key=len, reverse=True):
        text = text.replace(value, MASK)
    return masked(text)
