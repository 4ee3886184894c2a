"""What the command line says of itself: help, completion by the shell, the log, the manual page."""

from __future__ import annotations

import logging
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from acep_approx.cli import logs
from acep_approx.cli.main import EXAMPLES, app
from acep_approx.cli.manpage import manual
from acep_approx.cli.terminal import EventBar, stages
from tests.command_line import acep

ROOT = Path(__file__).parent.parent
LOST = "PATTERN SEQ(Packed p, Loaded l, Delivered d) WHERE [key] WITHIN 2 h"
TABLE = "TABLE t (k INT, v INT, KEY (k))\n"
COMMANDS = get_command(app).commands
ALL = pytest.mark.parametrize("name", COMMANDS)

# --- help -------------------------------------------------------------------------------------------------------------


def shown(*arguments: str, columns: int) -> str:
    """What a command prints on a terminal so wide."""
    result = CliRunner().invoke(app, [*arguments], env={"COLUMNS": str(columns)})
    assert result.exit_code == 0
    return result.stdout


@pytest.mark.parametrize("columns", [60, 80, 200])
@ALL
def test_help_fits_the_terminal_and_loses_no_word(name, columns):
    text = shown(name, "-h", columns=columns)
    assert max(map(len, text.splitlines())) <= columns
    assert "…" not in text
    words = re.sub(r"[│╭╮╰╯─\s]", "", text)
    for option in COMMANDS[name].params:
        if option.param_type_name == "option":
            assert all(spelled in words for spelled in option.opts)


@ALL
def test_each_command_says_what_it_does_and_shows_examples(name):
    text = shown(name, "--help", columns=80)
    first, *paragraphs = COMMANDS[name].help.split("\n\n")
    assert first.endswith(".")
    assert not any("\n" in paragraph for paragraph in (first, *paragraphs))  # so they are wrapped as is fit
    assert "Examples:" in text
    assert re.sub(r"\s", "", text).count(f"acep{name}") >= 2


@pytest.mark.parametrize("example", [e for commands in EXAMPLES.values() for some in commands.values() for e in some])
def test_examples_name_options_that_there_are(example):
    words = shlex.split(example.split(" && ")[0])
    name = words[words.index("acep") + 1]
    spelled = {spelling for option in COMMANDS[name].params for spelling in option.opts}
    mine = [word for word in words[words.index("acep") :] if word.startswith("-") and word != "-"]
    assert {word for word in mine if "T" not in word} <= spelled


def test_what_is_misspelled_is_guessed():
    assert "Did you mean 'run'?" in acep("rnu", code=2).stderr
    assert "--errors" in acep("run", "--erors", "1", code=2).stderr


@pytest.mark.parametrize("command", ["why"])
def test_commands_for_one_query_say_what_to_do_with_rules(command, tmp_path):
    rules = tmp_path / f"rules_{'with a long name ' * 5}.acep"
    rules.write_text(f"{TABLE}RULE r ON PATTERN A a WITHIN 5 DO UPSERT t AT (1) END\n", encoding="utf-8")
    said = " ".join(acep(command, f"@{rules}", "events.csv", code=2).stderr.split())
    assert "ACEP-U132" in said
    assert f"is a file of rules, and acep {command} takes one query" in said
    assert "what stands behind its ON" in said


# --- completion -------------------------------------------------------------------------------------------------------


def completed(line: str) -> list[str]:
    """What bash proposes for the last word of a line."""
    words = line.split(" ")
    asked = {"_ACEP_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
    return CliRunner().invoke(app, [], env=asked, prog_name="acep").stdout.split()


def test_commands_options_and_choices_are_completed():
    assert completed("acep ru") == ["run"]
    assert {"run", "why", "look"} <= set(completed("acep "))
    assert {"matches", "points"} <= set(completed("acep run --output "))
    assert completed("acep why --form") == ["--format"]
    assert completed("acep explain --format m") == ["mermaid"]


def test_files_are_left_to_the_shell_but_behind_an_at(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "queries").mkdir()
    for name in ("fast.acep", "far.cel", "events.csv", ".hidden.acep", "queries/slow.acep"):
        (tmp_path / name).write_text("", encoding="utf-8")
    assert completed("acep run fa") == completed("acep run x.acep ev") == completed("acep run x y -o ") == []
    assert completed("acep run @") == ["@far.cel", "@fast.acep", "@queries/"]
    assert completed("acep why @fas") == ["@fast.acep"]
    assert completed("acep check @queries/") == ["@queries/slow.acep"]
    assert completed("acep run @nowhere/") == []


@pytest.mark.parametrize(
    ("shell", "says"),
    [
        ("bash", "complete -o default -F _acep_completion acep"),
        ("zsh", "compdef _acep_completion acep"),
        ("fish", "complete --command acep"),
    ],
)
def test_the_script_for_a_shell(shell, says, monkeypatch):
    monkeypatch.setattr("typer.completion._get_shell_name", lambda: shell)
    assert says in CliRunner().invoke(app, ["--show-completion"], prog_name="acep").stdout


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_bash_understands_its_script(monkeypatch):
    monkeypatch.setattr("typer.completion._get_shell_name", lambda: "bash")
    script = CliRunner().invoke(app, ["--show-completion"], prog_name="acep").stdout
    ask = f"{script}\nacep() {{ echo run; echo replay; }}\nCOMP_WORDS=(acep r) COMP_CWORD=1\n"
    ask += "env() { acep; }\n_acep_completion acep\necho ${COMPREPLY[@]}; complete -p acep"
    done = subprocess.run(["bash", "--norc", "-c", ask], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["run replay", "complete -o default -F _acep_completion acep"]


# --- the log ----------------------------------------------------------------------------------------------------------

LINE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3} (DEBUG  |INFO   |WARNING|ERROR  ) acep_approx\.[a-z.]+: \S")


@pytest.mark.usefixtures("folder")
def test_the_log_says_what_was_understood_planned_and_how_long_it_took():
    assert not [line for line in acep("run", LOST, "events.csv").stderr.splitlines() if LINE.match(line)]
    lines = [line for line in acep("run", LOST, "events.csv", "--log", "info").stderr.splitlines() if LINE.match(line)]
    assert [line.split()[2].rstrip(":") for line in lines] == [
        "acep_approx.plan",
        "acep_approx.input",
        "acep_approx.progress",
    ]
    assert lines[0].endswith("engine: cells; 4 states, 0 errors at most")
    assert lines[1].endswith("time: 'ts', type: 'type', key: 'key', unit: as it is")
    assert re.search(r"matching took \d+\.\d\d s$", lines[2])
    assert ", key string, type string, kg double" in acep("run", LOST, "events.csv", "--log", "DEBUG").stderr
    assert not logging.getLogger("acep_approx").isEnabledFor(logging.INFO)


@pytest.mark.usefixtures("folder")
def test_the_log_goes_to_a_file_too(folder):
    said = acep("why", LOST, "events.csv", "--log", "debug", "--log", "why.log").stderr
    assert not LINE.search(said)
    lines = (folder / "why.log").read_text(encoding="utf-8").splitlines()
    assert all(LINE.match(line) for line in lines)
    assert "DEBUG   acep_approx.plan: query: PATTERN SEQ(Packed p" in lines[1]
    assert "ACEP-U133" in acep("check", "ab WITHIN 5", "--log", "debug", "--log", "info", code=2).stderr
    assert "ACEP-U133" in acep("check", "ab WITHIN 5", "--log", "a.log", "--log", "b.log", code=2).stderr
    assert "ACEP-U134" in acep("check", "ab WITHIN 5", "--log", "nowhere/a.log", code=2).stderr


def test_progress_and_stages_are_logged_now_and_then(caplog, monkeypatch):
    monkeypatch.setattr(logs, "EVERY", 0)
    with caplog.at_level(logging.INFO, "acep_approx"):
        EventBar(lambda _done, _total: None).done(1200)
        with stages(enabled=True) as stage:
            stage("reading", 0.1)
            stage("reading", 0.2)
            stage("learning", 0.5)
    assert [record.getMessage().split(", ")[0] for record in caplog.records] == [
        "1,200 events done",
        "reading: 10% done",
        "learning: 50% done",
    ]


def test_checkpoints_are_logged(folder):
    rules = f"{TABLE}RULE r ON PATTERN Packed a WITHIN 5 min DO UPSERT t SET v = 1 AT (1) END\n"
    (folder / "rules.acep").write_text(rules, encoding="utf-8")
    said = acep("run", "rules.acep", "events.csv", "--store", "t.db", "--log", "info").stderr
    assert re.search(r"acep_approx\.checkpoint: checkpoint after 5 events, \d+ bytes of state", said)


# --- the manual page --------------------------------------------------------------------------------------------------


def test_the_manual_page_is_fresh():
    kept = (ROOT / "docs/reference/acep.1").read_text(encoding="utf-8")
    assert kept == manual(), "write it anew: python -m acep_approx.cli.manpage > docs/reference/acep.1"


def test_the_manual_page_names_all():
    page = manual().replace("\\", "")
    for command in COMMANDS.values():
        assert f'.SH "ACEP {command.name.upper()}"' in page
        for option in command.params:
            assert all(spelled in page for spelled in option.opts if spelled.startswith("-"))
    assert "of [attribute] in question" in page
    assert "[cyan]" not in page


@pytest.mark.skipif(shutil.which("groff") is None, reason="there is no groff")
def test_man_reads_the_page_without_a_warning():
    done = subprocess.run(
        ["groff", "-man", "-ww", "-z", "-Tutf8", ROOT / "docs/reference/acep.1"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
