"""Whether this process has touched a chip, which is then its own until it ends."""

from __future__ import annotations

import functools
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pytest_ttnn_perf.device.import_hook import when_imported
from pytest_ttnn_perf.device.runtime import put_in_place

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

#: Each of these creates the context that owns the chips; ``get_arch_name`` does not.
_TOUCHING: Final = (
    "get_num_devices", "GetNumAvailableDevices", "GetNumPCIeDevices", "GetPCIeDeviceID",
    "get_device_ids", "get_pcie_device_ids", "open_device", "open_mesh_device", "CreateDevice",
    "CreateDevices",
)  # fmt: skip
_OF_CLUSTER: Final = ("get_cluster_type", "serialize_cluster_descriptor")


@dataclass(slots=True)
class Touched:
    """Remembers the first call that touched a chip."""

    by: str | None = None

    def watch(self) -> None:
        """Take notice of every such call from now on."""
        when_imported("ttnn", self._watch)

    def _watch(self, ttnn: ModuleType) -> None:
        for name in _TOUCHING:
            put_in_place(name, ttnn, functools.partial(self._noticing, f"ttnn.{name}"))
        cluster = getattr(ttnn, "cluster", None)
        for name in _OF_CLUSTER:
            original = getattr(cluster, name, None)
            if original is not None:
                wrapped = self._noticing(f"ttnn.cluster.{name}", original)
                setattr(cluster, name, wrapped)

    def _noticing(self, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def touching(*args: Any, **kwargs: Any) -> Any:
            if self.by is None:
                caller = sys._getframe(1)  # noqa: SLF001 (its place is what helps)
                self.by = f"{name} in {caller.f_code.co_filename}:{caller.f_lineno}"
            return original(*args, **kwargs)

        return touching
