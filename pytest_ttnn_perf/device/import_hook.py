"""Taking notice of a module's import, without importing it: nothing is loaded that nobody wants."""

from __future__ import annotations

import importlib.util
import sys
from importlib.abc import Loader, MetaPathFinder
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType


def when_imported(name: str, notice: Callable[[ModuleType], None]) -> None:
    """Call ``notice`` with the module ``name`` once it is imported; at once if it already is."""
    loaded = sys.modules.get(name)
    if loaded is not None:
        notice(loaded)
    else:
        sys.meta_path.insert(0, _Finder(name, notice))


class _Finder(MetaPathFinder):
    """Finds one module as everyone else would, and has its loader report to us once it is loaded.

    To look for a module is not to import it: the finder stays until it is.
    """

    def __init__(self, name: str, notice: Callable[[ModuleType], None]) -> None:
        self._name = name
        self._notice = notice
        self._searching = False

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,  # noqa: ARG002 (that of the protocol)
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> ModuleSpec | None:
        if fullname != self._name or self._searching:
            return None
        self._searching = True  # the search below comes here again
        try:
            spec = importlib.util.find_spec(fullname)
        finally:
            self._searching = False
        if spec is not None and spec.loader is not None:
            spec.loader = _Reporting(spec.loader, self._loaded)
        return spec

    def _loaded(self, module: ModuleType) -> None:
        if self in sys.meta_path:
            sys.meta_path.remove(self)
            self._notice(module)


class _Reporting(Loader):
    """A loader that reports what it has loaded; in all else it is the one behind it."""

    def __init__(self, loader: Loader, notice: Callable[[ModuleType], None]) -> None:
        self._loader = loader
        self._notice = notice

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        self._notice(module)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)
