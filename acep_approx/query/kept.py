"""The parsers of the languages: made once per machine from their grammars, and kept where compiled kernels are."""

from __future__ import annotations

import pickle
import sys
from contextlib import suppress
from functools import cache
from hashlib import sha256
from importlib import resources
from io import BytesIO
from typing import TYPE_CHECKING, Any, Literal

from acep_approx.jit.cache import directory, folders
from acep_approx.jit.private import NOT_BY_OTHERS, is_private
from history.files import replace_file

if TYPE_CHECKING:
    from collections.abc import Callable

    from lark import Lark, UnexpectedInput

    from acep_approx.errors import QueryError

OPTIONS: dict[str, Any] = {
    "parser": "lalr",
    "lexer": "contextual",
    "start": ["pattern_query", "regex", "clauses", "window", "expression"],
    "propagate_positions": True,
    "maybe_placeholders": False,
}


Language = Literal["query", "cel", "rules"]
"""What there is a parser for. CEL and files of rules extend the grammar of queries."""


@cache
def parser(language: Language = "query") -> Lark:
    """What reads texts of a language; to make it takes ten times as long as to load it."""
    from lark import Lark, __version__

    folder = resources.files("acep_approx.query")
    grammar = folder.joinpath("grammar.lark").read_text(encoding="utf-8")
    options = OPTIONS
    if language != "query":
        grammar += folder.joinpath(language, f"{language}.lark").read_text(encoding="utf-8")
        options = OPTIONS | {"start": [language]}
    made_of = repr((grammar, options, __version__, sys.version_info[:3]))
    name = f"grammar-{sha256(made_of.encode()).hexdigest()[:16]}.lark"
    for folder in folders():
        with suppress(OSError, EOFError, LookupError, ValueError, TypeError, AttributeError, pickle.UnpicklingError):
            if is_private(folder / name):
                return Lark.load(BytesIO((folder / name).read_bytes()))
    made, kept, place = Lark(grammar, **options), BytesIO(), directory()
    if place is not None:
        made.save(kept)
        with suppress(OSError):  # the disk may be full
            replace_file(place / name, kept.getvalue(), NOT_BY_OTHERS)
    return made


def parsed(language: Language, text: str, start: str, explain: Callable[[UnexpectedInput], QueryError]) -> Any:
    """The parse tree of a text.

    Raises
    ------
    QueryError
        What ``explain`` makes of what lark says.
    """
    from lark import UnexpectedInput

    try:
        return parser(language).parse(text, start=start)
    except UnexpectedInput as error:
        raise explain(error) from None
