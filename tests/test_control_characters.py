r"""What a terminal or a page would obey is shown: values, names, queries and paths come from strangers."""

from __future__ import annotations

import io
import json
import logging
import re
import subprocess
import sys
from xml.etree import ElementTree

import pyarrow as pa
import pytest

from acep_approx import compile_query, look
from acep_approx.cli.logs import logging_to
from acep_approx.cli.terminal import rows_out
from acep_approx.errors import AcepError, QueryError
from acep_approx.shell import quoted
from acep_approx.visible import escape, printable, visible
from tests.command_line import acep
from tests.processes import ROOT

ESC = "\x1b]52;c;eA==\x07"
OBEYED = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff\U000e0001]"
)
NASTY = f"{ESC}\x9b31m\u202eevil\u2066\ufeff\x7f"
LINES = f"a\nerror ACEP-X000: forged{NASTY}"


def is_clean(text):
    return OBEYED.search(text) is None


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [{"ts": 1, "type": "A", NASTY: NASTY, "v": LINES}, {"ts": 2, "type": "B", NASTY: "x", "v": NASTY}]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (tmp_path / "events.jsonl").write_text(text)
    (tmp_path / f"{NASTY}.jsonl").write_text(text)
    return tmp_path


def test_every_character_is_shown_or_stays():
    obeyed = "".join(map(chr, [*range(0x20), *range(0x7F, 0xA0), *range(0x2000, 0x2070), 0xFEFF, 0xD800, 0xDFFF]))
    assert is_clean(printable(obeyed))
    assert is_clean(visible(obeyed))
    assert "\n" in printable(obeyed)
    assert not set("\n\t\r") & set(visible(obeyed))
    printable(obeyed).encode()
    assert printable("日本 é 👍 C:\\x1b") == "日本 é 👍 C:\\x1b"
    shown = [visible(text) for text in ("a\x1b", "a\\x1b", "a\\\\x1b", "a\u202e", "a\\u202e", "a\n", "a\\x0a", "a\\n")]
    assert len(set(shown)) == len(shown)


def test_json_that_is_shown_says_the_same():
    value = "".join(map(chr, [*range(0x300), *range(0x2000, 0x2070), 0xFEFF, 0xE0001, 0x1F600]))
    shown = printable(json.dumps({value: value}, ensure_ascii=False, indent=1))
    assert is_clean(shown)
    assert json.loads(shown) == {value: value}


def test_carets_stand_below_what_is_shown():
    text = f"PATTERN SEQ(A a) WHERE '日本e\u0301\t{ESC}' = a.x AND ? WITHIN 5"
    with pytest.raises(QueryError) as caught:
        compile_query(text)
    at = text.index("?")
    line, carets = caught.value.caret().splitlines()
    assert is_clean(line)
    assert visible(text[:at]) in line
    assert len(carets.rstrip("^")) == len(line.partition("?")[0]) + 2 - 1  # two wide letters, one without a width


@pytest.mark.parametrize(
    "arguments",
    [
        ["look", "{file}"],
        ["look", "events.jsonl", "--key", NASTY],
        ["run", "PATTERN SEQ(A a, B b) WITHIN 5", "{file}", "--bind", NASTY, "--format", "table"],
        ["run", "PATTERN SEQ(A a, B b) WITHIN 5 RETURN a.v AS v", "{file}", "--format", "table"],
        ["run", f"PATTERN SEQ(A a, B b) WHERE a.v = '{NASTY}' WITHIN 5", "{file}"],
        ["run", f'PATTERN SEQ(A a, "{NASTY}" b) WITHIN 5', "{file}"],
        ["run", "PATTERN SEQ(A a, B b) WITHIN 5", f"no such {LINES}.csv"],
        ["run", f"PATTERN SEQ(A a, B b) {NASTY} WITHIN 5", "{file}"],
        ["run", "PATTERN SEQ(A a, B b) WITHIN 5", "{file}", "--time", NASTY],
        ["run", "PATTERN SEQ(A a, B b) WITHIN 5", "{file}", "--unit", NASTY],
        ["run", f"@{NASTY}", "{file}"],
        ["run", "PATTERN SEQ(A a, B b) WITHIN 5", "{file}", f"--{NASTY}"],
        [NASTY],
        ["run", "PATTERN SEQ(A a, B b) WITHIN 5", "{file}", "-o", f"{NASTY}/x.csv"],
        ["run", "PATTERN SEQ(A a, B b) WITHIN 5", "{file}", "--log", "debug", "--on-malformed", "skip"],
        ["why", "PATTERN SEQ(A a, B b) WITHIN 5", "{file}"],
        ["why", f'PATTERN SEQ(A a, "{NASTY}" b) WHERE a.v = b.v WITHIN 5', "{file}"],
        ["explain", f"PATTERN SEQ(A a, '{NASTY}' b) WHERE a.v = '{NASTY}' WITHIN 5"],
        *(
            ["explain", f'PATTERN SEQ(A a, "{NASTY}" b) WITHIN 5', "--format", form]
            for form in ("dot", "mermaid", "svg", "json")
        ),
        ["check", f'PATTERN SEQ(A a, "{NASTY}" b) WITHIN 5', "--input", "{file}"],
    ],
)
def test_nothing_that_a_command_shows_is_obeyed(folder, arguments):
    given = [f"{NASTY}.jsonl" if one == "{file}" else one for one in arguments]
    done = acep(*given, code=None)
    assert is_clean(done.stdout), ascii(done.stdout)
    assert is_clean(done.stderr), ascii(done.stderr)
    assert not any(line.startswith("error ACEP-X000") for line in (done.stdout + done.stderr).splitlines())


def test_malformed_rows_and_hints_are_shown(folder):
    (folder / "bad.csv").write_text(f"ts,type,{NASTY}\n1,A,x\nx{ESC},B,y\n2,C\n")
    done = acep("run", "PATTERN SEQ(A a, B b) WITHIN 5", "bad.csv", code=None)
    assert is_clean(done.stderr)


def test_the_answer_as_data_is_exact(folder):
    done = acep("run", "PATTERN SEQ(A a, B b) WITHIN 5 RETURN a.v AS v, b.v AS w", "events.jsonl")
    assert {k: json.loads(done.stdout)[k] for k in "vw"} == {"v": LINES, "w": NASTY}
    acep("run", "PATTERN SEQ(A a, B b) WITHIN 5 RETURN b.v AS w", "events.jsonl", "-o", "out.csv")
    assert NASTY.encode() in (folder / "out.csv").read_bytes()
    done = acep("look", "events.jsonl", "--format", "json")
    assert NASTY in [column["name"] for column in json.loads(done.stdout)["columns"]]


def test_rows_on_a_terminal_are_shown(monkeypatch):
    class Terminal(io.TextIOWrapper):
        def isatty(self):
            return True

    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", Terminal(raw, encoding="utf-8"))
    out = rows_out()
    out.write(json.dumps({"a": NASTY}, ensure_ascii=False).encode() + b"\n")
    out.write(pa.py_buffer(f"1,{ESC}\n".encode()))
    out.flush()
    first, second = raw.getvalue().decode().splitlines()
    assert json.loads(first) == {"a": NASTY}
    assert second == "1,\\x1b]52;c;eA==\\x07"


def test_words_of_commands_to_copy_are_the_same_in_bash(tmp_path):
    for word in (NASTY.replace("\x00", ""), f"it's {ESC} \\ and \"$x\"\nline", "name\udcff.csv"):
        line = quoted(word)
        assert is_clean(line)
        command = ["bash", "-c", f"printf %s {line}"]
        told = subprocess.run(command, capture_output=True, check=True, env={"LC_ALL": "C.UTF-8"})
        assert told.stdout == word.encode(errors="surrogateescape")


def test_logs_are_shown_and_a_message_is_one_entry(tmp_path):
    with logging_to([str(tmp_path / "log")]):
        logging.getLogger("acep_approx").warning("%s", LINES)
    text = (tmp_path / "log").read_text()
    assert is_clean(text)
    assert [line for line in text.splitlines() if not line.startswith((" ", "20"))] == []


def test_texts_of_python_are_shown(folder):
    error = AcepError(f"no {NASTY}", code="ACEP-E001", hint=NASTY)
    assert is_clean(str(error))
    assert is_clean(error.args[0])
    seen = look(folder / f"{NASTY}.jsonl")
    assert is_clean(str(seen))
    assert is_clean(repr(seen))
    assert is_clean(seen._repr_html_())
    query = compile_query(f"PATTERN SEQ(A a, '{NASTY}' b) WHERE a.v = '{NASTY}' WITHIN 5")
    assert is_clean(repr(query))
    assert is_clean(query.explain())
    assert is_clean(query._repr_html_())
    why = query.why(folder / "events.jsonl")
    assert is_clean(str(why))
    assert is_clean(repr(why))
    assert is_clean(why._repr_html_())
    none = query.match(folder / "events.jsonl").no_match()
    assert is_clean(str(none))
    assert is_clean(none._repr_html_())


def test_pictures_are_xml(folder):
    query = compile_query(f"PATTERN SEQ(A a, '{NASTY}\x00\x0b' b) WHERE a.v = '{NASTY}' WITHIN 5")
    ElementTree.fromstring(query.explain("svg"))
    assert escape("<\x00\x1b>") == "&lt;\\x00\\x1b&gt;"
    matches = compile_query("PATTERN SEQ(A a, B b) WITHIN 5").match(folder / f"{NASTY}.jsonl")
    matches.page(folder / "page.html")
    assert is_clean((folder / "page.html").read_text())


def test_nothing_prints_past_what_shows_control_characters():
    """``tell``, ``say``, ``show_error``, ``rows_out`` and ``console`` of ``cli/terminal.py`` do."""
    for path in (ROOT / "acep_approx" / "cli").rglob("*.py"):
        if path.name in ("terminal.py", "manpage.py"):
            continue
        text = path.read_text(encoding="utf-8").replace('typer.echo(f"acep {__version__}")', "")
        found = re.search(r"^ *print\(|\becho\(|std(out|err)\.(write|buffer)|\bConsole\(", text, re.MULTILINE)
        assert found is None, f"{path}: {found and found[0]}"
