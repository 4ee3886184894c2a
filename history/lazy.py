"""Public names of a package: loaded when they are first used, and found under the modules where they stood before.

So importing a package stays cheap, and its files can be moved. All three packages do it this way; this is the lowest.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from importlib.abc import Loader
    from types import ModuleType


def lazy(
    package: str, homes: Mapping[str, str], gone: Mapping[str, str] | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """What a package needs to load its public names when they are first used (PEP 562).

    Parameters
    ----------
    package : str
        Its own name.
    homes : mapping of str to str
        Modules, with the names that are loaded from each, blanks between them. No file of the package may have one of
        these names: which of the two is meant would depend on what was imported before.
    gone : mapping of str to str, optional
        Names that were public here, each with the package that has it now: they are given with a
        ``DeprecationWarning``.

    Returns
    -------
    tuple of two functions
        To be its ``__getattr__`` and ``__dir__``.
    """
    home = {name: module for module, names in homes.items() for name in names.split()}

    def get(name: str) -> Any:
        if gone and name in gone:
            return _from(gone[name], name, f"{package}.{name}")
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(home[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *home})

    return get, names


def _from(package: str, name: str, old: str) -> Any:
    """A public name from where it is now, with a warning."""
    warnings.warn(f"{old} is deprecated: import it from {package}", DeprecationWarning, stacklevel=3)
    return getattr(import_module(package), name)


def moved(modules: Sequence[str], to: str) -> None:
    """Let modules be imported that are gone, with a ``DeprecationWarning``.

    Parameters
    ----------
    modules : sequence of str
        Their full names. A package that is gone is named beside its modules; its warning comes when a name is used.
    to : str
        The package that has their public names now.
    """
    sys.meta_path.append(_Moved(modules, to))


class _Moved:
    """Finds modules that are gone, and loads in their place what gives the names of a package."""

    def __init__(self, modules: Sequence[str], to: str) -> None:
        self.modules = modules
        self.to = to

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> ModuleSpec | None:  # noqa: ARG002
        """As Python's import asks each finder."""
        # a Loader by its methods: importing importlib.abc would take long
        if fullname not in self.modules:
            return None
        return ModuleSpec(fullname, cast("Loader", self), is_package=self._is_package(fullname))

    def _is_package(self, name: str) -> bool:
        return any(module.startswith(f"{name}.") for module in self.modules)

    def create_module(self, spec: ModuleSpec) -> None:
        """The usual kind of module will do."""

    def exec_module(self, module: ModuleType) -> None:
        """Give it the names of the package."""
        old = module.__name__
        if self._is_package(old):
            # its modules are imported through it: whoever asks for one of these is warned of that one alone
            module.__getattr__ = self._of_package(old)  # type: ignore[method-assign]
            return
        last = old.rpartition(".")[2]
        warnings.warn(f"{old} is deprecated: import its names from {self.to}", DeprecationWarning, stacklevel=2)
        package = import_module(self.to)
        if last not in package.__all__:
            module.__getattr__ = lambda name: getattr(package, name)  # type: ignore[method-assign]
            return
        # The import ends by setting the attribute of this name in the package, where the public name must stay
        value = getattr(package, last)
        setattr(value, last, value)
        sys.modules[old] = value

    def _of_package(self, old: str) -> Callable[[str], Any]:
        def get(name: str) -> Any:
            if name not in import_module(self.to).__all__:
                raise AttributeError(f"module {old!r} has no attribute {name!r}")
            return _from(self.to, name, f"{old}.{name}")

        return get
