"""TTNN, which is never imported here: its tests have loaded it.

Releases differ, so what a module or device offers is looked for, not its version.
"""

from __future__ import annotations

import functools
import importlib.util
import inspect
import os
import re
import sys
from enum import Enum
from importlib.abc import Loader, MetaPathFinder
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from msgspec import Struct

from pytest_ttnn_perf.core.hardware import Hardware
from pytest_ttnn_perf.machine.environment import (
    MOCK,
    SIMULATOR,
    SLOW_DISPATCH,
    installed_version,
    is_simulated,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

    from pytest_ttnn_perf.core.hardware import Scalar


class Build(Struct, frozen=True):
    """The installed ttnn, without a ``version`` if it is missing.

    ``tracy`` and ``arch`` are None where unknown, ``arch`` also without hardware. ``problem`` says
    in one line why ttnn cannot be used. ``timed_out``: it did not answer in time.
    """

    version: str | None
    location: str | None = None
    tracy: bool | None = None
    arch: str | None = None
    problem: str | None = None
    timed_out: bool = False


_UNKNOWN: Final = "unknown"
#: Where TTNN calls these functions by their names itself.
_MODULES: Final = ("ttnn", "ttnn.device", "ttnn.distributed", "ttnn.distributed.distributed")
#: How a shape prints, such as ``MeshShape([1, 2])``.
_SIZES: Final = re.compile(r"[\[(]\s*(\d+(?:\s*,\s*\d+)*)\s*[\])]")


class Runtime:
    """The loaded module."""

    def __init__(self, ttnn: ModuleType) -> None:
        self.ttnn = ttnn

    def synchronize(self, devices: Iterable[Any]) -> None:
        for device in devices:
            self.ttnn.synchronize_device(device)

    def hardware(self, device: Any) -> Hardware:
        simulated = is_simulated(os.environ)
        return Hardware(_name(device.arch()), self.board, mesh_of(device), simulated=simulated)

    @property
    def board(self) -> str:
        """The physical system, from the cluster of an open device."""
        try:
            return _name(self.ttnn.cluster.get_cluster_type())
        except (AttributeError, RuntimeError):
            return _UNKNOWN

    def grid(self, device: Any) -> str | None:
        """Return the cores that a device has for work, such as ``8x7``."""
        try:
            size = device.compute_with_storage_grid_size()
            return f"{size.x}x{size.y}"
        except (AttributeError, RuntimeError):
            return None

    def program_cache_entries(self, devices: Iterable[Any]) -> int | None:
        """Return the number of cached programs; None where unknown."""
        try:
            return sum(int(device.num_program_cache_entries()) for device in devices)
        except (AttributeError, RuntimeError):
            return None

    def is_capturing_trace(self, devices: Iterable[Any]) -> bool:
        """Return whether ops are recorded instead of run, where known."""
        ask = getattr(self.ttnn, "is_trace_capture_active", None)
        try:
            return ask is not None and any(ask(device) for device in devices)
        except (TypeError, RuntimeError):
            return False


def mesh_of(device: Any) -> str:
    shape = getattr(device, "shape", None)
    if shape is None:
        return "1x1"
    try:
        sizes = [int(size) for size in shape]
    except TypeError:
        printed = _SIZES.search(str(shape))
        sizes = [int(size) for size in printed[1].split(",")] if printed else []
    return "x".join(map(str, sizes)) or "1x1"


def chips_of(device: Any) -> tuple[int, ...]:
    try:
        return tuple(int(chip) for chip in device.get_device_ids())
    except (AttributeError, TypeError, RuntimeError):
        return ()


def plain(value: Any) -> Scalar:
    """Return an argument for a record: a scalar, or a name."""
    is_plain = value is None or isinstance(value, (str, int, float, bool))
    if is_plain and not isinstance(value, Enum):
        return cast("Scalar", value)
    return _name(value)


def _name(value: Any) -> str:
    return str(getattr(value, "name", value)).rpartition(".")[2].lower()


def settings_of(arguments: Mapping[str, Any], defaults: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """Return the arguments that ``defaults`` names, given or not."""
    return {name: plain(arguments.get(name, default)) for name, default in defaults.items()}


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


_OPENERS: Final = ("open_device", "open_mesh_device", "CreateDevice", "CreateDevices")
_CLOSERS: Final = ("close_device", "close_mesh_device", "CloseDevice", "CloseDevices")
#: What decides how fast a device is, as TTNN names it, and what it is when nobody says.
_DEFAULTS: Final[Mapping[str, Scalar]] = {
    "num_command_queues": 1,
    "trace_region_size": 0,
    "l1_small_size": 0,
    "worker_l1_size": 0,
}


class UsedDevice(Struct, frozen=True, eq=False):
    """A device or mesh as it was opened, open or not."""

    hardware: Hardware
    chips: tuple[int, ...]
    configuration: Mapping[str, Scalar]


class OpenDevices:
    """The devices of this process, observed without opening or asking any."""

    def __init__(
        self, on_open: Callable[[], None] | None = None, runtime: Runtime | None = None
    ) -> None:
        self.on_open = on_open
        self.runtime = runtime
        #: Whether a device was opened: its chips are this process' until it exits, closed or not.
        self.has_opened = False
        self._open: list[tuple[Any, UsedDevice]] = []
        self._used: list[UsedDevice] = []
        self._fabric: str | None = None

    def observe(self) -> None:
        """Take notice of every device that is opened from now on."""
        when_imported("ttnn", self._observe)

    def begin_test(self) -> None:
        """Forget closed devices: the next test did not use them."""
        self._used = [device for _, device in self._open]

    @property
    def handles(self) -> list[Any]:
        return [handle for handle, _ in self._open]

    @property
    def used(self) -> UsedDevice | None:
        return max(self._used, key=lambda device: len(device.chips), default=None)

    @property
    def chips(self) -> frozenset[int]:
        return frozenset(chip for _, device in self._open for chip in device.chips)

    def synchronize(self) -> None:
        if self.runtime is not None:
            self.runtime.synchronize(self.handles)

    def _observe(self, ttnn: ModuleType) -> None:
        self.runtime = Runtime(ttnn)
        for name in _OPENERS:
            put_in_place(name, ttnn, self._opener)
        for name in _CLOSERS:
            put_in_place(name, ttnn, self._closer)
        put_in_place("set_fabric_config", ttnn, self._fabric_setter)

    def _opener(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def opened(*args: Any, **kwargs: Any) -> Any:
            self.has_opened = True
            if self.on_open is not None:
                self.on_open()  # before: what hangs in there leaves the device as well
            result = original(*args, **kwargs)
            arguments = _arguments(original, args, kwargs)
            for handle in result.values() if isinstance(result, dict) else [result]:
                self._add(handle, arguments)
            return result

        return opened

    def _closer(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def closed(*args: Any, **kwargs: Any) -> Any:
            device = next(iter((*args, *kwargs.values())), None)
            gone = list(device.values()) if isinstance(device, dict) else [device]
            for handle in gone:
                self._forget(handle)
            return original(*args, **kwargs)

        return closed

    def _fabric_setter(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def set_fabric_config(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            config = args[0] if args else kwargs.get("config")
            self._fabric = str(plain(config))
            return result

        return set_fabric_config

    def _add(self, handle: Any, arguments: Mapping[str, Any]) -> None:
        assert self.runtime is not None
        # CreateDevice may go through open_device: one device is one, the outer call knows more.
        for known in self._forget(handle):
            self._used.remove(known)
        device = UsedDevice(
            self.runtime.hardware(handle),
            chips_of(handle),
            dict(self._configuration(handle, arguments)),
        )
        self._open.append((handle, device))
        self._used.append(device)

    def _forget(self, handle: Any) -> list[UsedDevice]:
        known = [device for opened, device in self._open if opened is handle]
        self._open = [(opened, device) for opened, device in self._open if opened is not handle]
        return known

    def _configuration(
        self, handle: Any, arguments: Mapping[str, Any]
    ) -> Iterator[tuple[str, Scalar]]:
        assert self.runtime is not None
        yield from settings_of(arguments, _DEFAULTS).items()
        grid = self.runtime.grid(handle)
        if grid is not None:
            yield "grid", grid
        dispatch = arguments.get("dispatch_core_config")
        for part in ("type", "axis"):
            if getattr(dispatch, part, None) is not None:
                yield f"dispatch_core_{part}", plain(getattr(dispatch, part))
        if self._fabric not in {None, "disabled"}:
            yield "fabric", self._fabric
        # Said only where they hold: what was stored without them stays comparable.
        if SLOW_DISPATCH in os.environ:
            yield "slow_dispatch", True
        if os.environ.get(MOCK) and not os.environ.get(SIMULATOR):
            yield "mock_cluster", True


def _arguments(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Return arguments by name, as far as the signature is known."""
    try:
        return inspect.signature(function).bind_partial(*args, **kwargs).arguments
    except (TypeError, ValueError):
        return kwargs


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


def installed_ttnn() -> Build:
    """Return the version and the folder of the installed ttnn."""
    try:
        spec = importlib.util.find_spec("ttnn")
    except ValueError:  # something that is no package stands in for it
        spec = None
    # A folder of that name is no package; a simulator that stands in for it has another name.
    if spec is None or spec.origin is None or spec.name != "ttnn":
        return Build(None)
    version = installed_version("ttnn") or "unknown"  # used from its source tree
    return Build(version, str(Path(spec.origin).parent))
