"""What the site does to pages, so that one text reads well on a code host and here.

README, CHANGELOG and CONTRIBUTING stand outside of docs/: the site shows them as pages of its own. Links between pages
go on working; those to other files, such as experiments, lead nowhere without the source, and become plain text.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).parent.parent
OUTSIDE = {"README.md": "readme.md", "CHANGELOG.md": "changes.md", "CONTRIBUTING.md": "contributing.md"}
"""Pages that stand outside of docs/, with their names on the site."""
FENCE = re.compile(r"(^```.*?^```$)", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(([^)\s]+)\)")

BAR = re.compile(r"`[^`\n]*\\\|[^`\n]*`")


def on_files(files: Files, config: MkDocsConfig, **_: Any) -> Files:
    """Add the pages that stand outside of docs/."""
    from mkdocs.structure.files import File

    for name, uri in OUTSIDE.items():
        text = (ROOT / name).read_text(encoding="utf-8")
        files.append(File.generated(config, uri, content=for_site(text, name, uri)))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Make a page of docs/ one of the site."""
    uri = page.file.src_uri
    return markdown if uri in OUTSIDE.values() else for_site(markdown, f"docs/{uri}", uri)


def for_site(text: str, path: str, uri: str) -> str:
    """The text of the page at a path of the project, as that of the page at a URI of the site."""
    return "".join(
        part if part.startswith("```") else with_gaps(BAR.sub(unescaped, LINK.sub(linker(path, uri), part)))
        for part in FENCE.split(text)
    )


def linker(path: str, uri: str) -> Callable[[re.Match[str]], str]:
    """What to put in the place of a link of the page at a path, on the site."""

    def linked(found: re.Match[str]) -> str:
        kind, label, target = found.groups()
        file, sharp, anchor = target.partition("#")
        if not file or re.match(r"[a-z]+:", target):
            return found[0]
        place = posixpath.normpath(posixpath.join(posixpath.dirname(path), file))
        there = OUTSIDE.get(place, place.removeprefix("docs/") if place.startswith("docs/") else None)
        if there is None:
            return label
        return f"{kind}[{label}]({posixpath.relpath(there, posixpath.dirname(uri) or os.curdir)}{sharp}{anchor})"

    return linked


def unescaped(code: re.Match[str]) -> str:
    """Code with its bars as they are: code hosts want them escaped in tables, Markdown of the site does not."""
    return code[0].replace("\\|", "|")


def with_gaps(text: str) -> str:
    """A text with a blank line before each list: Markdown of the site asks for it, that of code hosts does not."""
    return "\n".join(gapped(text.split("\n")))


def gapped(lines: list[str]) -> Iterator[str]:
    """Lines, with a blank one before the first of each list."""
    is_in_list = False
    for before, line in zip(["", *lines], lines, strict=False):
        is_item = re.match(r"(?:[*-]|\d+\.) ", line) is not None
        if is_item and before.strip() and not is_in_list:
            yield ""
        is_in_list = is_item or (is_in_list and (not line.strip() or line.startswith(" ")))
        yield line
