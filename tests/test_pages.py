"""What all pages share: one shell that loads nothing, and queries as code, whatever is written in them."""

from __future__ import annotations

import json
import re
import tomllib
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pygments import highlight
from pygments.formatters import HtmlFormatter

from acep_approx.pages.code import code
from acep_approx.pages.lexer import AcepLexer
from acep_approx.pages.shell import json_text, page
from acep_approx.visible import printable
from tests.processes import ROOT

HOSTILE = "</script><script>alert(1)</script><!-- \" ' & \u2028 \u202e abc 👩‍👩‍👧 </style> " + "x" * 500


class Words(HTMLParser):
    """The words of some HTML, and its tags."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)

    def handle_data(self, data):
        self.words.append(data)


@given(st.text(max_size=80))
def test_code_shows_the_text_as_it_is(text):
    text = text.replace("\r", "").replace("\0", "")
    shown = Words(code(text))
    assert "".join(shown.words) == printable(text)
    assert set(shown.tags) <= {"pre", "code", "span"}


@pytest.mark.parametrize(
    ("text", "kind", "parts"),
    [
        ("PATTERN SEQ(A a) -- why not\nWITHIN 5 min", "kw", ["PATTERN", "SEQ", "WITHIN"]),
        ("PATTERN SEQ(A a) -- WITHIN 'x'\nWITHIN 5 min", "com", ["-- WITHIN 'x'"]),
        ("a.x = 'it''s -- AND' AND a.\"IN\" > 5", "str", ["'it''s -- AND'", '"IN"']),
        ("a.x > 5 AND b2.y < 1.5e3", "num", ["5", "1.5e3"]),
        ("avg(a[].x) > a.avg", "fn", ["avg"]),
        ("RULE r ON PATTERN A a DO UPDATE t END", "kw", ["RULE", "ON", "PATTERN", "DO", "UPDATE", "END"]),
    ],
)
def test_code_tells_words_apart(text, kind, parts):
    found = re.findall(rf'<span class="{kind}">(.*?)</span>', code(text))
    assert [part.replace("&#x27;", "'").replace("&quot;", '"') for part in found] == parts


@given(st.text(max_size=60))
def test_data_stays_inside_its_script(text):
    shown = json_text({"a": [text, HOSTILE]})
    assert json.loads(shown) == {"a": [text, HOSTILE]}
    assert not re.search("[<>&\u2028\u2029]", shown)


def test_a_page_is_whole_and_loads_nothing():
    shown = page(HOSTILE, ["<p>words</p>"], data={"x": HOSTILE})
    assert Words(shown).tags.count("script") == 1
    assert "<!-- " not in shown
    assert not re.search(r"url\(|@import|src=|href=|://", shown)
    assert "default-src 'none'" in shown


@given(st.text(max_size=80))
def test_pygments_shows_the_text_as_it_is(text):
    assert "".join(part for _, _, part in AcepLexer().get_tokens_unprocessed(text)) == text


def test_pygments_knows_queries_by_the_names_of_blocks():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (entry,) = project["entry-points"]["pygments.lexers"].values()
    assert entry == f"{AcepLexer.__module__}:{AcepLexer.__name__}"
    assert {"acep", "cel"} == set(AcepLexer.aliases)
    shown = highlight("PATTERN A a WITHIN 5 s -- all\n", AcepLexer(), HtmlFormatter(nowrap=True))
    assert '<span class="k">PATTERN</span>' in shown
    assert '<span class="c1">-- all</span>' in shown
