"""What the plugin relies on about devices, as TTNN itself has it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.ttnn.mock import N300, T3K, ask

if TYPE_CHECKING:
    from pathlib import Path

#: Opens devices in every way there is, and tells which of the replaced functions were called.
_WHO_CALLS = """
import importlib
called = []

def replace(module, name):
    original = getattr(module, name)
    def replaced(*args, **kwargs):
        called.append(f"{module.__name__}.{name}")
        return original(*args, **kwargs)
    setattr(module, name, replaced)

distributed = importlib.import_module("ttnn.distributed.distributed")
for module, *names in (
    (ttnn, "open_device", "close_device", "open_mesh_device", "close_mesh_device",
     "CreateDevice", "CloseDevice"),
    (ttnn.device, "open_device", "close_device"),
    (distributed, "open_mesh_device", "close_mesh_device"),
):
    for name in names:
        replace(module, name)

def calls(action):
    called.clear()
    action()
    return list(called)

def managed(context):
    with context:
        pass

shape = ttnn.MeshShape(1, 2)
tell(
    open_device=calls(lambda: ttnn.close_device(ttnn.open_device(device_id=0))),
    open_mesh=calls(lambda: ttnn.close_mesh_device(ttnn.open_mesh_device(shape))),
    create=calls(lambda: ttnn.CloseDevice(ttnn.CreateDevice(0))),
    manage=calls(lambda: managed(ttnn.manage_device(0))),
    create_mesh=calls(lambda: managed(ttnn.create_mesh_device(shape))),
)
"""


def test_ways_to_open_a_device_and_what_they_take(tmp_path: Path) -> None:
    told = ask(
        tmp_path,
        T3K,
        """
import inspect
settings = dict(num_command_queues=2, l1_small_size=24576, trace_region_size=1000000)
shape = ttnn.MeshShape(1, 1)
for opened, close in (
    (lambda: ttnn.open_device(device_id=0, **settings), ttnn.close_device),
    (lambda: ttnn.CreateDevice(0, **settings), ttnn.CloseDevice),
    (lambda: ttnn.CreateDevices([0], **settings), ttnn.CloseDevices),
    (lambda: ttnn.open_mesh_device(shape, **settings), ttnn.close_mesh_device),
):
    close(opened())
tell(
    signatures={name: [*inspect.signature(getattr(ttnn, name)).parameters]
                for name in ("open_mesh_device", "CreateDevice", "CreateDevices")},
    no_signature=said(inspect.signature, ttnn.open_device),
    by_position=said(ttnn.open_device, 0).splitlines()[0],
    created=said(lambda: (devices := ttnn.CreateDevices([0]), ttnn.CloseDevices(devices))[0]),
)
""",
    )

    own = ["num_command_queues", "l1_small_size", "trace_region_size", "dispatch_core_config"]
    assert told["signatures"]["CreateDevice"] == ["device_id", *own, "worker_l1_size"]
    assert told["signatures"]["CreateDevices"] == ["device_ids", *own, "worker_l1_size"]
    mesh = told["signatures"]["open_mesh_device"]
    assert mesh[0] == "mesh_shape"
    assert {*own, "offset", "physical_device_ids", "worker_l1_size"} == {*mesh[1:]}
    assert told["no_signature"].startswith("ValueError")
    assert told["by_position"].startswith("TypeError: open_device(): incompatible function")
    assert told["created"] == "{0: MeshDevice(1x1 grid, 1 devices)}"


def test_who_calls_which_name_to_open_a_device(tmp_path: Path) -> None:
    """Functions can be replaced in the modules that hold them.

    ``manage_device`` and ``create_mesh_device`` do not call what the module ``ttnn`` holds.
    """
    told = ask(
        tmp_path,
        N300,
        _WHO_CALLS,
    )

    mesh = "ttnn.distributed.distributed"
    assert told == {
        "open_device": ["ttnn.open_device", "ttnn.close_device"],
        "open_mesh": ["ttnn.open_mesh_device", "ttnn.close_mesh_device"],
        "create": ["ttnn.CreateDevice", "ttnn.CloseDevice"],
        "manage": ["ttnn.device.open_device", "ttnn.device.close_device"],
        "create_mesh": [f"{mesh}.open_mesh_device", f"{mesh}.close_mesh_device"],
    }
