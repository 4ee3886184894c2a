"""Queries as code for Pygments: blocks ``acep`` and ``cel`` of the docs, and ``pygmentize -l acep``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pygments.lexer import Lexer
from pygments.token import Comment, Keyword, Name, Number, String, Text

from acep_approx.pages.code import tokens

KINDS = {"com": Comment.Single, "str": String, "kw": Keyword, "fn": Name.Function, "num": Number, "": Text}


class AcepLexer(Lexer):  # type: ignore[misc]  # Pygments ships no types
    """Finds the keywords, texts, numbers and comments of queries and files of rules; an entry point of Pygments."""

    name = "acep"
    aliases = ("acep", "cel")
    filenames = ("*.acep", "*.cel")

    def get_tokens_unprocessed(self, text: str) -> Iterator[tuple[int, Any, str]]:
        """Pieces of a text, each with its place and kind."""
        at = 0
        for kind, part in tokens(text):
            yield at, KINDS[kind], part
            at += len(part)
