"""The page about the language says what the code does; broken queries of every kind get a message."""

from __future__ import annotations

import random
import re
from importlib import resources
from pathlib import Path

import pytest

from acep_approx.errors import QueryError
from acep_approx.query.checks import check
from acep_approx.query.parser import parse
from acep_approx.query.printer import to_text
from tests.cases import cases

PAGE = (Path(__file__).parent.parent / "docs" / "reference" / "language.md").read_text(encoding="utf-8")
QUERIES = re.findall(r"```acep\n(.*?)```", PAGE, re.DOTALL)


def test_the_quoted_grammar_is_the_grammar():
    grammar = resources.files("acep_approx.query").joinpath("grammar.lark").read_text(encoding="utf-8")
    assert re.findall(r"```lark\n(.*?)```", PAGE, re.DOTALL) == [grammar]


@pytest.mark.parametrize("text", QUERIES)
def test_queries_of_the_page_are_right(text):
    query = parse(text)
    check(query)
    assert parse(to_text(query)) == query


def test_python_of_the_page_runs(capsys):
    *_, code = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    exec(code)
    assert capsys.readouterr().out.startswith("PATTERN SEQ(Shelf a, ~(Register b), Exit c)\nWHERE [tag_id]")


def test_every_code_is_on_the_page():
    folder = Path(str(resources.files("acep_approx.query")))
    raised = {
        code
        for file in folder.glob("*.py")
        for code in re.findall(r'"(ACEP-[A-Z]\d{3})"', file.read_text(encoding="utf-8"))
    }
    assert raised == set(re.findall(r"^\| (ACEP-[A-Z]\d{3}) \|", PAGE, re.MULTILINE))


def test_any_damage_to_a_query_gives_a_message_with_a_place():
    dice = random.Random(1)
    texts = [re.findall(r"\w+|\s+|.", text) for text in QUERIES]
    spare = [word for words in texts for word in words] + [
        *"\"&!;~`'%@#\\é\n\0",
        "--",
        "||",
        "=>",
        "((",
        "1e999",
    ]
    for _ in range(cases(1500)):
        words = list(dice.choice(texts))
        for _ in range(dice.choice([1, 1, 2, 4])):
            place = dice.randrange(len(words))
            words[place : place + dice.choice([0, 1, 1, 5])] = dice.choices(spare, k=dice.choice([0, 1]))
            words = words or [" "]
        text = "".join(words)
        try:
            query = parse(text)
            assert parse(to_text(query)) == query
            check(query)
        except QueryError as error:
            assert 0 <= error.start <= error.end <= len(text)
            assert error.message in str(error)
