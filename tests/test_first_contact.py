"""The first quarter of an hour of a stranger: thirty mistakes and twenty files, each with an answer that helps."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from acep_approx.cli.main import app
from acep_approx.events.live import kafka
from experiments.first_contact import lacking
from experiments.first_contact_cases import FILES, MISTAKES, Case
from experiments.first_contact_files import write_all


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with all files."""
    path = tmp_path_factory.mktemp("contact")
    write_all(path)
    return path


def cases(given: tuple[Case, ...]):
    """Cases by their names."""
    return pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in given])


def answered(case: Case) -> None:
    """Each command of a case prints what a good answer has, and never a traceback."""
    for command in case.commands:
        done = CliRunner().invoke(app, list(command.words))
        assert done.exception is None or isinstance(done.exception, SystemExit), done.output
        assert lacking(command, done.exit_code, done.output) == [], done.output


@cases(MISTAKES)
def test_mistakes_are_explained(case, folder, monkeypatch):
    monkeypatch.chdir(folder)
    monkeypatch.setattr(kafka, "ANSWER", 0.1)  # seconds that a broker is waited for
    answered(case)


@cases(FILES)
def test_files_as_people_have_them_are_understood(case, folder, monkeypatch):
    monkeypatch.chdir(folder)
    answered(case)


def test_there_are_as_many_as_promised():
    names = [case.name for case in (*MISTAKES, *FILES)]
    assert len(MISTAKES) >= 30
    assert len(FILES) >= 20
    assert len(set(names)) == len(names)


def test_poor_answers_are_noticed():
    (command, *_) = MISTAKES[0].commands
    assert lacking(command, 0, "Traceback (most recent call last)")[-2:] == [
        "no traceback",
        "the exit code is 0, not 3",
    ]
