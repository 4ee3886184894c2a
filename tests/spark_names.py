"""Lets PySpark ask the JVM once what a name is, not thousands of times: a tenth of what tests on Spark take.

For each ``jvm.org.apache`` the JVM looks for a class ``org`` in all 280 archives of Spark, once for each package that
it imports, then for a class ``org.apache``. Each report of a stream has dozens of such names.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def remember_names() -> None:
    """From now on keep each package and class beside the name that it was found by."""
    from py4j.java_gateway import JavaPackage, JVMView

    for owner in (JVMView, JavaPackage):
        if owner.__getattr__.__module__ != __name__:
            owner.__getattr__ = _remembering(owner.__getattr__)


def _remembering(ask: Callable[[Any, str], Any]) -> Callable[[Any, str], Any]:
    from py4j.java_gateway import JavaClass

    def asked(owner: Any, name: str) -> Any:
        found = ask(owner, name)
        if isinstance(found, JavaClass) or name.islower():  # a class that is not there may come with a connector
            owner.__dict__[name] = found
        return found

    return asked
