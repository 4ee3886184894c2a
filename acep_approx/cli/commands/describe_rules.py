"""``acep check`` and ``acep explain`` of files of rules."""

from __future__ import annotations

from typing import Any

from acep_approx.cli.options.rules import apart
from acep_approx.cli.terminal import amount, tell


def check_rules_text(
    text: str,
    roles: dict[str, Any],
    input: str | None,  # noqa: A002
    reading: dict[str, Any],
) -> None:
    """Check a file of rules, against events if there are some.

    Raises
    ------
    AcepError
        Something is wrong.
    """
    from acep_approx.api.rule_set import compile_rules

    rules = compile_rules(text)
    tables, number = amount(len(rules.file.tables), "table"), amount(len(rules.file.rules), "rule")
    lines = [f"{tables} and {number} are right and can be run"]
    if input is not None:
        from acep_approx.events.source import open_source

        events = open_source(input, **reading, on_malformed="skip")  # only columns and types matter here
        lines.append(f"reads      {', '.join(rules.check(events, **roles))}")
    tell("\n".join(lines))


def explain_rules_text(text: str, format: str) -> None:  # noqa: A002  (the option's name)
    """Show how rules are run, or draw which tables they share.

    Raises
    ------
    UsageError
        ``ACEP-U064``: in another format.
    """
    from acep_approx.api.rule_set import compile_rules

    if format not in ("text", "mermaid", "dot", "svg"):
        raise apart(f"--format {format}", "choose text, mermaid, dot or svg")
    rules = compile_rules(text)
    tell(rules.explain() if format == "text" else rules.graph(format))
