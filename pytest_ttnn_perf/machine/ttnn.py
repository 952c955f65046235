"""TTNN, which is never imported here: its tests have loaded it.

Releases differ, so what a module or device offers is looked for, not its version.
"""

from __future__ import annotations

import importlib.util
import re
import sys
from enum import Enum
from importlib.abc import Loader, MetaPathFinder
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

    from pytest_ttnn_perf.core.hardware import Scalar


#: Where TTNN calls these functions by their names itself.
_MODULES: Final = ("ttnn", "ttnn.device", "ttnn.distributed", "ttnn.distributed.distributed")


def plain(value: Any) -> Scalar:
    """Return an argument for a record: a scalar, or a name."""
    is_plain = value is None or isinstance(value, (str, int, float, bool))
    if is_plain and not isinstance(value, Enum):
        return cast("Scalar", value)
    return name_of(value)


def name_of(value: Any) -> str:
    return str(getattr(value, "name", value)).rpartition(".")[2].lower()


def put_in_place(
    name: str, ttnn: ModuleType, wrapper: Callable[[Callable[..., Any]], Callable[..., Any]]
) -> None:
    """Wrap a function wherever TTNN calls it by its name."""
    original = getattr(ttnn, name, None)
    if original is None:
        return
    wrapped = wrapper(original)
    for module in map(sys.modules.get, _MODULES):
        if getattr(module, name, None) is original:
            setattr(module, name, wrapped)


def when_imported(name: str, notice: Callable[[ModuleType], None]) -> None:
    """Call ``notice`` with a module once it is imported."""

    def loaded(module: ModuleType) -> None:
        if watch in sys.meta_path:
            sys.meta_path.remove(watch)
            notice(module)

    watch = ImportWatch(loaded, name)
    if name in sys.modules:
        notice(sys.modules[name])
    else:
        sys.meta_path.insert(0, watch)


class ImportWatch(MetaPathFinder):
    """Has loaders report modules, which it finds as others do.

    With a ``name`` only that module. To look for it is not to import it: the watch stays.
    """

    def __init__(self, notice: Callable[[ModuleType], None], name: str | None = None) -> None:
        self._notice, self._name = notice, name

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        own = fullname.partition(".")[0] == "pytest_ttnn_perf"
        if own or self._name not in {None, fullname} or self not in sys.meta_path:
            return None
        for finder in sys.meta_path[sys.meta_path.index(self) + 1 :]:
            find = getattr(finder, "find_spec", None)
            spec: ModuleSpec | None = find(fullname, path, target) if find else None
            if spec is not None:
                if hasattr(spec.loader, "exec_module"):
                    spec.loader = _Reporting(spec.loader, self._notice)  # type: ignore[arg-type]
                return spec
        return None


class _Reporting(Loader):
    """A loader that reports what another one has loaded."""

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


#: ``TT_FATAL @ file:line: condition``, then ``info:`` and ``backtrace:`` on lines of their own.
_RAISED: Final = re.compile(r"TT_(?:FATAL|THROW|ASSERT) @ [^\n]*")
_INFO: Final = re.compile(r"\s*^info:[ \t]*$(.*?)(?=^backtrace:|\Z)", re.DOTALL | re.MULTILINE)
#: The user-mode driver ends its errors with where they were raised, and a numbered backtrace.
_DRIVER: Final = re.compile(r"\n\s*Location: [^\n]*\n.*\Z", re.DOTALL)


def cause_of(text: str) -> str:
    r"""Return the cause of an error of TTNN in one line.

    >>> cause_of("RuntimeError: TT_FATAL @ a.cpp:129: n > 0\ninfo:\nNo chips\nbacktrace:\n --- f()")
    'No chips'
    >>> cause_of("ImportError: libcudnn.so.9: cannot open shared object file")
    'ImportError: libcudnn.so.9: cannot open shared object file'
    """
    raised = _RAISED.search(text)
    if raised is None:
        return _DRIVER.sub("", text)
    info = _INFO.match(text, raised.end())
    # Without words of its own, the condition that failed is all there is.
    return " ".join((info[1] if info else "").split()) or raised[0].strip()


def error_text(kind: str, text: str) -> str:
    """Return an error in one line, without tt-metal's backtrace."""
    lines = cause_of(text).strip().splitlines()
    return f"{kind}: {lines[0]}" if lines else kind


def ttnn_folder() -> Path | None:
    """Return the folder of the installed ttnn; None without one."""
    try:
        spec = importlib.util.find_spec("ttnn")
    except ValueError:  # something that is no package stands in for it
        spec = None
    # A folder of that name is no package; a simulator that stands in for it has another name.
    if spec is None or spec.origin is None or spec.name != "ttnn":
        return None
    return Path(spec.origin).parent
