"""Which devices are open, and how they were opened: told by the calls that tests make."""

# ruff: noqa: ARG001, ARG005, PLW0108 (the arguments are TTNN's)

from __future__ import annotations

import enum
import sys
from dataclasses import dataclass
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from pytest_ttnn_perf.core.hardware import Hardware
from pytest_ttnn_perf.measure.profilers import OpenDevices, UsedDevice

SPELT_OUT = {
    "num_command_queues": 1, "trace_region_size": 0, "l1_small_size": 0, "worker_l1_size": 0,
}  # fmt: skip
DEFAULTS: dict[str, object] = {**SPELT_OUT, "grid": "8x7"}
MESH = "ttnn.distributed.distributed"
Fabric = enum.Enum("Fabric", "DISABLED FABRIC_1D")


@dataclass(eq=False)
class Mesh:
    """A device, as far as it is looked at."""

    chips: tuple[int, ...] = (0,)
    shape: tuple[int, ...] = (1, 1)
    closed: int = 0

    def arch(self) -> str:
        return "Arch.WORMHOLE_B0"

    def get_device_ids(self) -> list[int]:
        return list(self.chips)

    def compute_with_storage_grid_size(self) -> SimpleNamespace:
        return SimpleNamespace(x=8, y=7)


class Compiled:
    """A function of a compiled module: it takes keywords only, and has no signature."""

    @property
    def __signature__(self) -> object:
        raise ValueError

    def __call__(self, **arguments: Any) -> Mesh:
        return Mesh((arguments["device_id"],))


def close(device: Mesh) -> None:
    device.closed += 1


def open_mesh(
    mesh_shape: tuple[int, int] = (1, 2), l1_small_size: int = 0, trace_region_size: int = 0,
    num_command_queues: int = 1, dispatch_core_config: object = None,
) -> Mesh:  # fmt: skip
    return Mesh(tuple(range(mesh_shape[0] * mesh_shape[1])), mesh_shape)


FUNCTIONS: dict[str, Any] = {
    "open_device": Compiled(),
    "close_device": close,
    "CreateDevice": lambda device_id, num_command_queues=1: Mesh((device_id,)),
    "CloseDevice": close,
    "CreateDevices": lambda device_ids, num_command_queues=1: {i: Mesh((i,)) for i in device_ids},
    "CloseDevices": lambda devices: [*map(close, devices.values())],
}
OF_MESH: dict[str, Any] = {
    "open_mesh_device": open_mesh,
    "close_mesh_device": lambda mesh_device: close(mesh_device),
}


@dataclass
class Scene:
    """A ttnn in pieces, and what is observed of it."""

    ttnn: Any
    devices: OpenDevices

    @property
    def told(self) -> list[UsedDevice]:
        return self.devices._used

    def configurations(self) -> list[object]:
        return [device.configuration for device in self.told]


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> Scene:
    """Return an observed ttnn whose parts hold each other's functions, as the real one's do."""
    scene = Scene(ModuleType("ttnn"), OpenDevices())
    fabric = {"set_fabric_config": lambda config, reliability_mode=None: config}
    vars(scene.ttnn).update(FUNCTIONS | OF_MESH | fabric)
    monkeypatch.setitem(sys.modules, "ttnn", scene.ttnn)
    for name in ("ttnn.device", "ttnn.distributed", MESH):
        module = ModuleType(name)
        vars(module).update(FUNCTIONS if name == "ttnn.device" else OF_MESH)
        monkeypatch.setitem(sys.modules, name, module)
    scene.devices.observe()
    return scene


@pytest.mark.parametrize(
    ("way", "arguments", "closes"),
    [
        ("open_device", {"device_id": 3}, "close_device"),
        ("open_mesh_device", {"mesh_shape": (1, 2)}, "close_mesh_device"),
        ("CreateDevice", {"device_id": 3}, "CloseDevice"),
    ],
)
def test_a_device_is_open_from_its_opening_to_its_closing(
    scene: Scene, way: str, arguments: dict[str, object], closes: str
) -> None:
    device = getattr(scene.ttnn, way)(**arguments)
    (known,) = scene.told
    assert (scene.devices.handles, scene.devices.used) == ([device], known)
    mesh = "1x2" if "mesh_shape" in arguments else "1x1"
    assert known.hardware == Hardware("wormhole_b0", "unknown", mesh)
    assert (known.chips, scene.devices.chips) == (device.chips, frozenset(device.chips))
    assert known.configuration == DEFAULTS

    getattr(scene.ttnn, closes)(device)
    assert (device.closed, scene.devices.handles, scene.devices.chips) == (1, [], frozenset())
    assert scene.devices.used is known


def test_a_test_uses_what_is_open_when_it_begins_and_what_it_opens(scene: Scene) -> None:
    devices, ttnn = scene.devices, scene.ttnn
    shared = ttnn.open_device(device_id=0)  # by a fixture of the module
    for _ in range(2):
        devices.begin_test()
        assert [devices.used] == scene.told

    mesh = ttnn.open_mesh_device()  # by the second test alone
    of_module, of_test = scene.told
    assert devices.used is of_test
    ttnn.close_mesh_device(mesh)
    assert devices.used is of_test
    devices.begin_test()
    assert devices.used is of_module

    ttnn.close_device(shared)
    assert devices.used is of_module
    devices.begin_test()
    assert devices.used is None
