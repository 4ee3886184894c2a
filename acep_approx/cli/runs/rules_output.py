"""What comes of rules on its way out: matches, changes and calls, to files or to the terminal, with numbers of it."""

from __future__ import annotations

import json
import sys
from collections import Counter
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from acep_approx.cli.options.choices import Format
from acep_approx.cli.options.output import SHOWN
from acep_approx.cli.options.rules import RuleOptions
from acep_approx.cli.terminal import rows_out, tell

if TYPE_CHECKING:
    import pyarrow as pa

    from acep_approx.api.rule_set import RuleSet
    from acep_approx.cli.rows_file import RowsFile
    from acep_approx.results.explorer.many_queries import GatheredMatches
    from acep_approx.results.rules import RuleCall, RuleOutput


@dataclass
class RulesOutput:
    """Where what comes of rules goes, and numbers of it.

    Parameters
    ----------
    rules : RuleSet
    files : ExitStack
        Closes files.
    form : Format
        Of matches and changes.
    folder : Path or None
        For matches; None: stdout.
    options : RuleOptions
    is_live : bool
        Whether files are to be read while they are written.
    gathered : GatheredMatches, optional
        Gets the matches, for a page.
    """

    rules: RuleSet
    files: ExitStack
    form: Format
    folder: Path | None
    options: RuleOptions
    is_live: bool = False
    gathered: GatheredMatches | None = None
    found: Counter[str] = field(default_factory=Counter)
    fired: Counter[str] = field(default_factory=Counter)
    changed: Counter[str] = field(default_factory=Counter)
    called: Counter[str] = field(default_factory=Counter)
    _open: dict[Path, RowsFile] = field(default_factory=dict)
    _shown: dict[str, list[pa.Table]] = field(default_factory=dict)
    _calls: RowsFile | None = None

    def __post_init__(self) -> None:
        path = self.options.calls
        if path is not None:
            self._calls = self._file(path, Format.JSONL)
        for folder in (self.folder, self.options.changes):
            if folder is not None:
                with suppress(OSError):  # told when a file cannot be written
                    folder.mkdir(exist_ok=True)

    def take(self, output: RuleOutput) -> None:
        """Put out what came of some events."""
        for rule, table in output.items():
            self.matches(rule, table)
        for name, table in output.changes.items():
            self.changed[name] += table.num_rows
            if self.options.changes is not None and not self.rules.file.table(name).is_static:
                self._rows(self.options.changes, name, table)

    def matches(self, rule: str, table: pa.Table) -> None:
        """Put out matches of a rule."""
        import pyarrow.compute as pc

        self.found[rule] += table.num_rows
        if self.gathered is not None:
            self.gathered.take(rule, table)
        if "fired" in table.column_names:
            self.fired[rule] += pc.sum(table.column("fired")).as_py() or 0
        if self.folder is not None:
            self._rows(self.folder, rule, table)
        elif self.form is Format.TABLE:
            some = self._shown.setdefault(rule, [])
            some.append(table.slice(0, max(0, SHOWN - sum(one.num_rows for one in some))))
        elif table.num_rows:
            _print(rule, table)

    def call(self, call: RuleCall) -> None:
        """Put out a call."""
        import pyarrow as pa

        self.called[call.name] += 1
        if self._calls is not None:
            row = {**vars(call), "arguments": json.dumps(call.arguments, default=str)}
            self._calls.write(pa.Table.from_pylist([row]))

    def end(self) -> None:
        """All has been put out: show tables."""
        from acep_approx.cli.write import print_table

        for rule, tables in self._shown.items():
            tell(f"{rule}")
            print_table(tables, "matches")

    def _rows(self, folder: Path, name: str, table: pa.Table) -> None:
        form = self.form
        if form is Format.TABLE:
            form = Format.JSONL
        path = folder / f"{name}.{form.value}"
        if path not in self._open:
            self._open[path] = self._file(path, form)
        self._open[path].write(table)

    def _file(self, path: Path, form: Format) -> RowsFile:
        from acep_approx.cli.rows_file import RowsFile

        goes_on = self.options.store is not None
        return RowsFile(self.files, path, form, grows=goes_on or self.is_live, anew=not goes_on)


def _print(rule: str, table: pa.Table) -> None:
    """Matches on stdout, as lines that say which rule they are of."""
    import pyarrow as pa

    from acep_approx.events.writing.tables import json_lines

    names = ["rule_" if name == "rule" else name for name in table.column_names]
    column = pa.repeat(pa.scalar(rule), table.num_rows)
    rows_out().write(json_lines(table.rename_columns(names).add_column(0, "rule", column)))
    sys.stdout.flush()
