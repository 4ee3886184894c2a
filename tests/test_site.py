"""The site is built from the pages of docs/: every link leads somewhere, and nothing is loaded from elsewhere."""

from __future__ import annotations

import logging
import os
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

os.environ["NO_MKDOCS_2_WARNING"] = "1"  # the theme prints an advertisement when it is imported

from mkdocs.commands.build import build
from mkdocs.config import load_config
from mkdocs.exceptions import Abort

ROOT = Path(__file__).parent.parent


@pytest.fixture(autouse=True)
def _levels():
    """Building sets levels of loggers; other tests get them back."""
    logger = logging.getLogger("mkdocs")
    before = logger.level, list(logger.handlers)
    yield
    logger.level, logger.handlers = before


def built(folder: Path, **options: object) -> Path:
    """The site as it is built in a folder; warnings are errors."""
    config = load_config(str(ROOT / ".mkdocs.yml"), site_dir=str(folder), strict=True, **options)
    config.plugins.on_startup(command="build", dirty=False)
    build(config)
    return folder


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    return built(tmp_path_factory.mktemp("site"))


class Loaded(HTMLParser):
    """What a page loads when it is opened."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []

    def handle_starttag(self, tag, attrs):
        named = dict(attrs)
        if tag in ("script", "img", "iframe", "source", "video"):
            self.addresses.append(named.get("src") or "")
        if tag == "link" and named.get("rel") not in ("next", "prev", "canonical"):
            self.addresses.append(named.get("href") or "")


def test_the_site_is_built_and_loads_nothing_from_elsewhere(site):
    pages = list(site.rglob("*.html"))
    assert len(pages) > 30
    for page in pages:
        loaded = Loaded()
        loaded.feed(page.read_text(encoding="utf-8"))
        assert loaded.addresses
        assert not [address for address in loaded.addresses if re.match(r"(https?:)?//", address)], page
        if page.name != "404.html":  # its addresses begin at the root
            local = [address for address in loaded.addresses if address and not address.startswith("data:")]
            assert not [address for address in local if not (page.parent / address).exists()], page


def test_scripts_of_the_source_are_no_pages(site):
    assert not list(site.rglob("*.py"))
    assert (site / "images" / "flights.svg").exists()


def test_pages_that_stand_outside_of_docs_are_there_and_their_links_lead_to_pages(site):
    readme = (site / "readme.html").read_text(encoding="utf-8")
    assert 'href="reference/language.html"' in readme
    assert 'href="changes.html"' in readme
    assert 'href="docs/' not in readme


def test_every_row_of_a_table_has_as_many_cells_as_its_head(site):
    """Bars in code are written in two ways; where one is mistaken, a row gets one cell more, or shows a backslash."""
    cli = (site / "reference" / "cli.html").read_text(encoding="utf-8")
    assert "<code>--unit ns|us|ms|s</code>" in cli
    for page in site.rglob("*.html"):
        for table in re.findall(r"<table>.*?</table>", page.read_text(encoding="utf-8"), re.DOTALL):
            assert len({row.count("<td") for row in table.split("<tr>")[2:]}) == 1, (page, table)


@pytest.mark.parametrize("text", ["[gone](gone.md)", "[no heading](index.md#no-heading)", "[here](#nowhere)"])
def test_a_broken_link_is_an_error(text, tmp_path):
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "index.md").write_text(f"# Index\n\n{text}\n", encoding="utf-8")
    pages = ["index.md"]
    with pytest.raises(Abort):
        built(tmp_path / "site", docs_dir=str(docs), nav=pages, hooks=[])
    (docs / "index.md").write_text("# Index\n\n[here](#index)\n", encoding="utf-8")
    built(tmp_path / "site", docs_dir=str(docs), nav=pages, hooks=[])
