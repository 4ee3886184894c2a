"""Asking for help is quick: nothing heavy is imported before it is needed."""

from __future__ import annotations

import pytest

from tests.processes import HEAVY, imported

COMMAND = "import sys; sys.argv = ['acep', *{}]; from acep_approx.cli.main import main; main()"
COMMANDS = ("run", "train", "tune", "replay", "why", "check", "explain")


@pytest.mark.parametrize("arguments", ["--help", "--version", *(f"{command} --help" for command in COMMANDS)])
def test_help_imports_nothing_heavy(arguments):
    assert not imported(COMMAND.format(arguments.split())) & HEAVY


def test_the_package_imports_nothing_heavy():
    found = imported("import acep_approx")
    assert "acep_approx" in found
    assert not found & HEAVY


def test_what_is_imported_is_seen():
    assert {"numpy", "json"} <= imported("import json, numpy")
