"""Values of options that need no conversion: they are those that Typer makes."""

from __future__ import annotations

import click
import pytest
import typer.main

from acep_approx.cli.main import app
from acep_approx.cli.options.groups import take_plain_values
from tests.processes import imported

GROUP = typer.main.get_command(app)
COMMANDS = sorted(GROUP.commands)
TEXTS = ["", "a", "1", "0.5", "auto", "points", "POINTS", "ms", "csv", "yes"]
VALUES = [None, *TEXTS, 1, 2.5, True, ("a",), ("a", "b"), (), [], ("1",)]


def of_typer(option, value):
    """What Typer makes of a value of an option, or why it takes none."""
    if not hasattr(option, "_runtime_param"):
        pytest.skip("a Typer that converts in another way")
    option._runtime_param = None
    return outcome(option.get_runtime_param(), option, value)


def outcome(conversion, option, value):
    try:
        found = conversion.coerce(value, param=option, ctx=None)
    except (TypeError, ValueError, typer.BadParameter) as error:
        return type(error), str(error)
    return type(found), found


@pytest.mark.parametrize("command", COMMANDS)
def test_they_are_what_typer_makes_of_them(command):
    for option in GROUP.commands[command].params:
        for value in VALUES:
            wanted = of_typer(option, value)
            option._runtime_param = None
            take_plain_values([option])
            assert outcome(option._runtime_param, option, value) == wanted, (option.name, value)


def test_what_must_be_converted_is_converted_by_typer():
    option = next(option for option in GROUP.commands["run"].params if option.name == "errors")
    assert of_typer(option, "3") == (int, 3)
    option._runtime_param = None
    take_plain_values([option])
    assert option._runtime_param.annotation is int
    assert option._runtime_param.coerce("3", param=option, ctx=None) == 3


def test_an_option_of_another_typer_is_left_alone():
    option = click.Option(["--some"])
    take_plain_values([option])
    assert not hasattr(option, "_runtime_param")


def test_a_command_imports_no_pydantic():
    program = "import sys; sys.argv = ['acep', 'check', 'PATTERN SEQ(A a, B b) WITHIN 5']\n"
    found = imported(program + "from acep_approx.cli.main import main; main()")
    assert "typer" in found
    assert "pydantic" not in found
