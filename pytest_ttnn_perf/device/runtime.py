"""TTNN, as far as it is used here. It is never imported: a test that uses it has loaded it.

Releases differ, so what a module or device offers is looked for, not its version.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, cast

from pytest_ttnn_perf.model.hardware import Hardware

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from types import ModuleType

    from pytest_ttnn_perf.model.hardware import Scalar

_UNKNOWN: Final = "unknown"
#: Where TTNN calls these functions by their names itself.
_MODULES: Final = ("ttnn", "ttnn.device", "ttnn.distributed", "ttnn.distributed.distributed")
#: How a shape prints, such as ``MeshShape([1, 2])``.
_SIZES: Final = re.compile(r"[\[(]\s*(\d+(?:\s*,\s*\d+)*)\s*[\])]")


@dataclass(frozen=True, slots=True)
class Runtime:
    """The loaded module."""

    ttnn: ModuleType

    def synchronize(self, devices: Iterable[Any]) -> None:
        """Wait until devices have done all that they were told."""
        for device in devices:
            self.ttnn.synchronize_device(device)

    def hardware(self, device: Any) -> Hardware:
        """Return what a test runs on that opened this device, which is open."""
        return Hardware(_name(device.arch()), self.board, mesh_of(device))

    @property
    def board(self) -> str:
        """The physical system. Asks for the cluster, which an open device has created already."""
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
        """Return how many programs the caches of devices hold; None where they do not tell."""
        try:
            return sum(int(device.num_program_cache_entries()) for device in devices)
        except (AttributeError, RuntimeError):
            return None

    def is_capturing_trace(self, devices: Iterable[Any]) -> bool:
        """Return whether ops are being recorded instead of run; False where nothing tells."""
        ask = getattr(self.ttnn, "is_trace_capture_active", None)
        try:
            return ask is not None and any(ask(device) for device in devices)
        except (TypeError, RuntimeError):
            return False


def mesh_of(device: Any) -> str:
    """Return the shape of a mesh, such as ``1x1``."""
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
    """Return the numbers of a mesh's chips; () where they are not told."""
    try:
        return tuple(int(chip) for chip in device.get_device_ids())
    except (AttributeError, TypeError, RuntimeError):
        return ()


def plain(value: Any) -> Scalar:
    """Return an argument as a record can hold it: a scalar as it is, an enum by its name."""
    is_plain = value is None or isinstance(value, (str, int, float, bool))
    if is_plain and not isinstance(value, Enum):
        return cast("Scalar", value)
    return _name(value)


def _name(value: Any) -> str:
    """Return the name of an enum's member in lower case."""
    return str(getattr(value, "name", value)).rpartition(".")[2].lower()


def settings_of(arguments: Mapping[str, Any], defaults: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """Return the arguments that ``defaults`` names; given or not, the same setting is the same."""
    return {name: plain(arguments.get(name, default)) for name, default in defaults.items()}


def put_in_place(
    name: str, ttnn: ModuleType, wrapper: Callable[[Callable[..., Any]], Callable[..., Any]]
) -> None:
    """Put a wrapper in the place of a function, wherever it is called by its name."""
    original = getattr(ttnn, name, None)
    if original is None:
        return
    wrapped = wrapper(original)
    for module in map(sys.modules.get, _MODULES):
        if getattr(module, name, None) is original:
            setattr(module, name, wrapped)
