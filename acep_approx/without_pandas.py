"""Lets pyarrow do without pandas until somebody imports it.

When pyarrow first gets values of Python or numpy, it imports pandas, only to tell its frames from other values: a fifth
of a second, and 30 MB. As long as nobody has imported pandas there are no frames. So pyarrow is told that pandas is not
installed. It looks again when anybody imports pandas, and when it makes values of pandas itself (nanoseconds in
Python). What it finds out once and for all when it is to guess the type of a list is none of this: that still imports
pandas, so columns of our own are made with their type.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from threading import get_ident
from typing import Any

import pyarrow as pa

_SHIM = "_pandas_api"
"""What pyarrow asks about pandas: an object of ``pyarrow.lib``, which forgets what it knows when it is made again."""


def leave_pandas_out() -> None:
    """Let pyarrow do without pandas if nobody has imported it.

    A pyarrow that does not work as is needed for this is left as it is, and imports pandas as before.
    """
    shim = getattr(pa.lib, _SHIM, None)
    is_left_out = any(isinstance(finder, _Watch) for finder in sys.meta_path)
    if "pandas" in sys.modules or is_left_out or not hasattr(type(shim), "have_pandas"):
        return
    watch = _Watch(shim)
    sys.meta_path.insert(0, watch)
    if not watch.hides():
        sys.meta_path.remove(watch)
        watch.give_up()


class _Watch:
    """Notices when pandas is imported, first of all that import things; see ``leave_pandas_out``.

    Parameters
    ----------
    shim : object
        What pyarrow asks about pandas.
    """

    def __init__(self, shim: Any) -> None:
        self.shim = shim
        self._hidden_from: int | None = None
        self._times_hidden = 0
        self._is_wanted = False

    def hides(self) -> bool:
        """Let pyarrow look for pandas, and find none; whether that went as it should."""
        moment = pa.Array.from_buffers(pa.timestamp("ns"), 1, [None, pa.py_buffer(bytes(8))])[0]
        self._hidden_from = get_ident()
        try:
            for times in (1, 2):  # it looks again after it has forgotten
                self.forget()
                if self.shim.have_pandas or self._times_hidden != times:
                    return False
            setattr(pa.lib, _SHIM, _Asking(self))
            moment.as_py()  # asks, and looks a third time
            setattr(pa.lib, _SHIM, _Asking(self))
        finally:
            self._hidden_from = None
        return self._times_hidden == 3 and not self._is_wanted

    def forget(self) -> None:
        """Let pyarrow look again when it next wants to know."""
        setattr(pa.lib, _SHIM, self.shim)
        self.shim.__init__()

    def give_up(self) -> None:
        """Leave pyarrow as it was; where it does not forget, let it have pandas now."""
        self.forget()
        if not self.shim.have_pandas:
            with suppress(ImportError):
                getattr(self.shim, "pd", None)

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> None:  # noqa: ARG002
        """As Python's import asks each finder."""
        if fullname != "pandas":
            return
        if self._hidden_from == get_ident():
            self._times_hidden += 1
            raise ModuleNotFoundError("hidden from pyarrow", name=fullname)
        self._is_wanted = True  # perhaps by another thread while it is hidden from this one
        self.forget()


class _Asking:
    """Stands where pyarrow asks about pandas before it makes values of pandas, or takes a frame."""

    def __init__(self, watch: _Watch) -> None:
        self._watch = watch

    def __getattr__(self, name: str) -> Any:
        if getattr(pa.lib, _SHIM) is self:
            self._watch.forget()
        return getattr(self._watch.shim, name)
