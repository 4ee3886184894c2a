"""From the text of a file of rules to its tree: `parse_rules`."""

from __future__ import annotations

import re
from typing import Any

from acep_approx.arguments import checked
from acep_approx.errors import QueryError
from acep_approx.query.kept import parser
from acep_approx.query.limits import refuse_deep_text, refuse_deep_tree, refuse_long_text, refuse_many_words
from acep_approx.query.parser import LEADING, refuse_calls
from acep_approx.query.rules.assemble import RulesAssembler
from acep_approx.query.rules.messages import EXAMPLE, explain_rules, fault
from acep_approx.query.rules.syntax import Rule, RuleFile, Table, expressions

_BEGINNING = re.compile(r"(?:TABLE|RULE)\s+(?!WITHIN\b)[\w`]", re.IGNORECASE)


def is_rules(text: str) -> bool:
    r"""Whether a text begins like a file of rules, not like a query.

    Parameters
    ----------
    text : str

    Examples
    --------
    >>> is_rules("-- hygiene\ntable status (hcw text, key (hcw))"), is_rules("PATTERN SEQ(RULE a, TABLE b) WITHIN 5")
    (True, False)
    """
    begin = LEADING.match(text)
    return _BEGINNING.match(text, begin.end() if begin is not None else 0) is not None


@checked
def parse_rules(text: str) -> RuleFile:
    """Read a file of rules.

    Names, keys and types are not looked at: `acep_approx.query.rules.checks.check_rules` does that.

    Parameters
    ----------
    text : str
        Tables and rules, in any order. Rules run in the order of the text.

    Returns
    -------
    RuleFile
        The tree. All positions, those of the rules' queries too, are in ``text``.

    Raises
    ------
    QueryError
        The text is no file of rules (ACEP-Q001 to Q018, ACEP-R001 to R025).
    LimitError
        It is too long (ACEP-Q020, Q023) or nested too deep (ACEP-Q021).

    Examples
    --------
    >>> file = parse_rules('''
    ... TABLE status (hcw text, level text DEFAULT 'safe', KEY (hcw))
    ... RULE warn ON
    ...   PATTERN SEQ(EXIT a, ENTER b) WHERE [hcw] AND store.status[b.hcw].level = 'safe' WITHIN 45 s
    ... DO UPDATE status SET level = 'warning' AT (b.hcw) END''')
    >>> file.tables[0].is_total, file.rules[0].actions[0].table
    (True, 'status')
    """
    refuse_long_text(text)
    begin = LEADING.match(text)
    if begin is not None and begin.end() == len(text):
        raise QueryError("there is no rule", code="ACEP-R001", hint=EXAMPLE, text=text.strip() and text)
    refuse_deep_text(text)
    refuse_many_words(text)
    parts = [_assembled(tree, text) for tree in _trees(text)]
    tables = tuple(part for part in parts if isinstance(part, Table))
    return RuleFile(tables, tuple(part for part in parts if isinstance(part, Rule)), text)


def _trees(text: str) -> list[Any]:
    """The parse trees of the tables and the rules."""
    from lark import UnexpectedInput

    try:
        return list(parser("rules").parse(text, start="rules").children)
    except UnexpectedInput as error:
        raise explain_rules(text, error) from None


def _refuse_words(tree: Any, text: str) -> None:
    """A word of the language before a bracket that reads like a call: something is missing before it."""
    for call in tree.find_data("call"):
        token, word = call.children[0], call.children[0].upper()
        if word == "AT":
            message, hint = "a value is missing before AT", "write SET level = 'safe' AT (b.hcw)"
        elif word == "EXISTS":
            message, hint = "EXISTS asks for a row of a table", "write EXISTS store.status[b.hcw]"
        else:
            continue
        raise fault(text, "ACEP-Q001", message, (token.start_pos, token.end_pos), hint)


def _assembled(tree: Any, text: str) -> Table | Rule:
    _refuse_words(tree, text)
    refuse_calls(tree, text)
    part: Table | Rule = RulesAssembler(text).assemble(tree)
    if isinstance(part, Rule):
        inside = (expression for action in part.actions for expression in expressions(action))
        for expression in (*inside, *(() if part.when is None else (part.when,))):
            refuse_deep_tree(expression, text)
    return part
