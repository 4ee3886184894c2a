"""All experiments by theme, with one line each: ``python -m experiments``."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console

HERE = Path(__file__).parent
THEMES = {
    "": "Examples",
    "recordings": "What every kind of run prints, held against another version",
    "speed": "How fast each part is",
    "peers": "Against other engines",
    "shedding": "Load budgets",
    "learning": "Learning while the stream runs",
    "on_spark": "Spark",
    "sase2008": "Papers, measured again",
    "afa2010": "",
    "cayuga": "",
    "active2011": "",
}
"""Folder: title of what is in it; those without one go on with the last."""


def first_line(path: Path) -> str:
    """What a module says of itself in its first line."""
    return (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").split("\n")[0]


def commands(folder: str) -> Iterator[tuple[str, str]]:
    """Names of the modules of a folder that can be run, and what each says of itself."""
    place, name = HERE / folder, f"experiments.{folder}".rstrip(".")
    if folder and (place / "__main__.py").exists():
        yield name, first_line(place / "evaluation.py")
    for path in sorted(place.glob("*.py")):
        if 'if __name__ == "__main__"' in path.read_text(encoding="utf-8") and path.name != "__main__.py":
            yield f"{name}.{path.stem}", first_line(path)


def main() -> None:
    """Print the list."""
    console = Console(highlight=False, soft_wrap=True)
    for folder, title in THEMES.items():
        if title:
            console.print(f"\n{title}", style="bold")
        for name, line in commands(folder):
            console.print(f"  python -m {name}\n      {line}", markup=False)
    console.print("\nEach takes --help. Where a real stream is not there, it says so and runs on a generated one.")
    console.print("What the names in tables mean, and where data come from: docs/reference/reproduce.md")


if __name__ == "__main__":
    main()
