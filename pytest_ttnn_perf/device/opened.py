"""Which devices a process has open, and how: observed from the calls that open them."""

from __future__ import annotations

import functools
import inspect
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from pytest_ttnn_perf.device.import_hook import when_imported
from pytest_ttnn_perf.device.runtime import (
    Runtime,
    chips_of,
    plain,
    put_in_place,
    settings_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from types import ModuleType

    from pytest_ttnn_perf.model.hardware import Hardware, Scalar

_OPENERS: Final = ("open_device", "open_mesh_device", "CreateDevice", "CreateDevices")
_CLOSERS: Final = ("close_device", "close_mesh_device", "CloseDevice", "CloseDevices")
#: What decides how fast a device is, as TTNN names it, and what it is when nobody says.
_DEFAULTS: Final[Mapping[str, Scalar]] = {
    "num_command_queues": 1,
    "trace_region_size": 0,
    "l1_small_size": 0,
    "worker_l1_size": 0,
}


@dataclass(frozen=True, eq=False, slots=True)
class UsedDevice:
    """A device or mesh, as it was when it was opened. Does not keep it open."""

    hardware: Hardware
    chips: tuple[int, ...]
    configuration: Mapping[str, Scalar]


@dataclass(slots=True)
class OpenDevices:
    """The devices of this process. Nothing is opened, queried or imported that tests would not."""

    on_open: Callable[[], None] | None = None
    runtime: Runtime | None = None
    _open: list[tuple[Any, UsedDevice]] = field(default_factory=list)
    _used: list[UsedDevice] = field(default_factory=list)
    _fabric: str | None = None

    def observe(self) -> None:
        """Take notice of every device that is opened from now on."""
        when_imported("ttnn", self._observe)

    def begin_test(self) -> None:
        """Forget the devices that are closed: the next test did not use them."""
        self._used = [device for _, device in self._open]

    @property
    def handles(self) -> list[Any]:
        """The devices that are open."""
        return [handle for handle, _ in self._open]

    @property
    def used(self) -> UsedDevice | None:
        """The device that the test has used; of several, the one with the most chips."""
        return max(self._used, key=lambda device: len(device.chips), default=None)

    @property
    def chips(self) -> frozenset[int]:
        """The chips of all open devices."""
        return frozenset(chip for _, device in self._open for chip in device.chips)

    def synchronize(self) -> None:
        """Wait for all open devices."""
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
        """Strike a device off the list of open ones; return what was known of it."""
        known = [device for each, device in self._open if each is handle]
        self._open = [(each, device) for each, device in self._open if each is not handle]
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


def _arguments(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Return arguments by name; those without one are unknown where the signature is."""
    try:
        return inspect.signature(function).bind_partial(*args, **kwargs).arguments
    except (TypeError, ValueError):
        return kwargs
