"""The table of what does not go together on the command line names options that there are, and words that are whole."""

from __future__ import annotations

import pytest
import typer.main

from acep_approx.cli.main import app
from acep_approx.cli.options.together import REFUSED, refuse
from acep_approx.errors import UsageError

COMMANDS = typer.main.get_command(app).commands
OPTIONS = {str(option.name) for name in ("run", "check", "train", "replay") for option in COMMANDS[name].params}


@pytest.mark.parametrize("kind", REFUSED)
def test_it_names_options_that_there_are(kind):
    refused = REFUSED[kind]
    named = {name.partition(":")[0] for name in (*refused.hints, *refused.but)}
    assert named
    assert named <= OPTIONS


@pytest.mark.parametrize("kind", REFUSED)
def test_each_refusal_says_which_option_and_what_to_do(kind):
    for name in (*REFUSED[kind].hints, *(OPTIONS - REFUSED[kind].but if REFUSED[kind].but else ())):
        with pytest.raises(UsageError) as refused:
            refuse({name: "--this"}, {kind: "--mine"})
        assert refused.value.code == REFUSED[kind].code
        assert refused.value.hint
        assert "{" not in str(refused.value)


def test_what_no_kind_names_goes_with_all():
    refuse({"time": "--time", "file": "-o", "output:matches": "--output matches"}, dict.fromkeys(REFUSED, "--mine"))
