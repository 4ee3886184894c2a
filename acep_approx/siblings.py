"""Whether ``history`` and ``rl`` are the packages that come with this one, and what to do where they are not.

Both are common names: Python may find somebody's own file of that name first, and another distribution may have written
over ours. Nobody's file is run to find out, and nobody's is made to give way: where it is found first, our modules are
loaded from beside this package, each under its full name, and the bare name stays that of its owner. So files of ours
never import the bare name.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec, module_from_spec
from pathlib import Path

HOME = Path(__file__).parent.parent
NAMES = ("history", "rl")
DISTRIBUTION = "acep-approx"
REPAIR = f"pip install --force-reinstall {DISTRIBUTION}"


def check_siblings() -> None:
    """Load them by their place where others are found by their names; refuse what has replaced them.

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
        if ours is None or ours.origin is None:
            raise ImportError(f"the package {name!r} of {DISTRIBUTION} is not there any more; repair with: {REPAIR}")
        if place is not None and (_is_here(name, place) or _shares_modules(name, place, ours)):
            raise ImportError(_words(name, place))
        _load_beside(name, ours)


def _shares_modules(name: str, place: Path, ours: ModuleSpec) -> bool:
    """Whether somebody's package has a module that is called as one of ours: only one of the two can be imported."""
    from pkgutil import iter_modules

    folder = place.parent if place.stem == "__init__" else place
    inside = {path.stem for path in folder.iterdir()} if folder.is_dir() else set[str]()
    inside |= {module.split(".")[1] for module in sys.modules if module.startswith(f"{name}.")}
    return any(found.name in inside for found in iter_modules(ours.submodule_search_locations))


def _load_beside(name: str, ours: ModuleSpec) -> None:
    """Load all modules of our package; then the name is that of what Python finds, or has imported, again."""
    from pkgutil import walk_packages

    with _kept(name):
        sys.modules[name] = module = module_from_spec(ours)
        assert ours.loader is not None, "it has a file"
        ours.loader.exec_module(module)
        if getattr(module, "__distribution__", None) != DISTRIBUTION:
            raise ImportError(_words(name, HOME / name / "__init__.py"))
        for found in walk_packages(module.__path__, f"{name}."):
            importlib.import_module(found.name)


@contextmanager
def _kept(name: str) -> Iterator[None]:
    """Give a name back to the module that has it now, or to none."""
    theirs = sys.modules.pop(name, None)
    try:
        yield
    finally:
        sys.modules.pop(name, None)
        if theirs is not None:
            sys.modules[name] = theirs


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
