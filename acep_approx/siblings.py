"""Whether ``history`` and ``rl`` are the packages that come with this one, and what to do where they are not.

Both are common names: Python may find somebody's own file of that name first, and another distribution may have written
over ours. Nobody's file is run to find out. It could be made to give way, but then its owner would import ours.
"""

from __future__ import annotations

import importlib
import sys
from importlib.machinery import PathFinder
from importlib.util import find_spec
from pathlib import Path

HOME = Path(__file__).parent.parent
NAMES = ("history", "rl")
DISTRIBUTION = "acep-approx"
REPAIR = f"pip install --force-reinstall {DISTRIBUTION}"


def check_siblings() -> None:
    """Refuse other packages in their place.

    Raises
    ------
    ImportError
        Names the file that is in the way, or the distribution that has replaced ours, and the way out.
    """
    for name in NAMES:
        place = _place(name)
        if place is not None and _is_here(name, place) and _is_marked(name):
            continue
        ours = PathFinder.find_spec(name, [str(HOME)])
        if place is None or ours is None or ours.origin is None:
            raise ImportError(f"the package {name!r} of {DISTRIBUTION} is not there any more; repair with: {REPAIR}")
        raise ImportError(_words(name, place))


def _place(name: str) -> Path | None:
    """The file that is imported by this name; of a package without one its folder."""
    module = sys.modules.get(name)
    if module is None:
        origin = getattr(find_spec(name), "origin", None)
    else:
        origin = getattr(module, "__file__", None) or next(iter(getattr(module, "__path__", [])), None)
    return Path(origin) if origin else None


def _is_here(name: str, place: Path) -> bool:
    """Whether it lies where this package does."""
    return place.parent.resolve() == (HOME / name).resolve()


def _is_marked(name: str) -> bool:
    """Whether what lies there is what came with this package."""
    return getattr(importlib.import_module(name), "__distribution__", None) == DISTRIBUTION


def _words(name: str, place: Path) -> str:
    """What is wrong, and what to do."""
    from importlib.metadata import packages_distributions  # it takes as long as all the rest of the package

    others = [other for other in packages_distributions().get(name, []) if other != DISTRIBUTION]
    if others and {"site-packages", "dist-packages"} & set(place.parts):
        them = " and ".join(sorted(set(others)))
        return (
            f"the package {name!r} at {place} belongs to another distribution, {them}, and {DISTRIBUTION} "
            f"has one of this name: keep them in environments of their own, or repair with: pip uninstall {them}, "
            f"then {REPAIR}"
        )
    if _is_here(name, place):
        return f"the package {name!r} at {place} is not as {DISTRIBUTION} installed it; repair with: {REPAIR}"
    mine = place.parent if place.stem == "__init__" else place
    return (
        f"{mine} is in the way: Python takes it for the package {name!r} of {DISTRIBUTION}; rename it, or start Python "
        "where it is not found first"
    )
