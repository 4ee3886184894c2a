"""From the tree of a file of rules back to text."""

from __future__ import annotations

from acep_approx.query.printer import clauses, field_name
from acep_approx.query.printer import to_text as text_of
from acep_approx.query.rules.syntax import Action, Call, Rule, RuleFile, Table


def to_text(node: RuleFile | Table | Rule | Action) -> str:
    """Write a tree as text.

    Parameters
    ----------
    node : RuleFile, Table, Rule, Write or Call
        As the parser makes it.

    Returns
    -------
    str
        Of a file: the tables, then the rules, each in its order; ``parse_rules(to_text(file)) == file``.

    Examples
    --------
    >>> from acep_approx.query import parse_rules
    >>> print(to_text(parse_rules('''table room(id text, key(id)) static
    ... rule r on pattern A a within 5 s when exists store.room[a.x] do call f; delete room at(a.x) end''')))
    TABLE room (id text, KEY (id)) STATIC
    <BLANKLINE>
    RULE r ON
      PATTERN A a
      WITHIN 5 s
      WHEN EXISTS store.room[a.x]
    DO CALL f;
       DELETE room AT (a.x)
    END
    """
    match node:
        case Table():
            return _table(node)
        case Rule():
            return "\n".join(_rule(node))
        case RuleFile():
            parts = ["\n".join(map(_table, node.tables))] if node.tables else []
            return "\n\n".join([*parts, *map(to_text, node.rules)])
    return _action(node)


def _table(table: Table) -> str:
    parts = []
    for column in table.columns:
        default = "" if column.default is None else f" DEFAULT {text_of(column.default)}"
        parts.append(f"{field_name(column.name)} {column.holds}{default}")
    parts.append(f"KEY ({', '.join(map(field_name, table.key))})")
    return f"TABLE {table.name} ({', '.join(parts)})" + (" STATIC" if table.is_static else "")


def _rule(rule: Rule) -> list[str]:
    worth = "" if rule.worth == 1 else f" WORTH {rule.worth!r}".removesuffix(".0")
    lines = [f"RULE {rule.name}{worth} ON", *(f"  {clause}" for clause in clauses(rule.query))]
    if rule.when is not None:
        lines.append(f"  WHEN {text_of(rule.when)}")
    if rule.actions:
        if rule.each == "point":
            lines.append("FOR EACH POINT")
        lines.append("DO " + ";\n   ".join(map(_action, rule.actions)))
        lines.append("END")
    return lines


def _action(action: Action) -> str:
    if isinstance(action, Call):
        arguments = f"({', '.join(map(text_of, action.arguments))})" if action.arguments else ""
        return f"CALL {action.name}{arguments}"
    sets = ", ".join(f"{field_name(one.column)} = {text_of(one.value)}" for one in action.sets)
    words = [action.kind.upper(), action.table, *([f"SET {sets}"] if sets else [])]
    return " ".join([*words, f"AT ({', '.join(map(text_of, action.key))})"])
