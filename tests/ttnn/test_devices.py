"""What the plugin relies on about devices, as TTNN itself has it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.ttnn.mock import CLUSTERS, N150, N300, T3K, Cluster, ask

HARDWARE = Path("/dev/tenstorrent")
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


@pytest.mark.parametrize("value", ["0", "1"])
def test_the_profilers_variable_is_refused_whatever_it_says(tmp_path: Path, value: str) -> None:
    """This build is without Tracy. The name of the architecture is asked anew each time."""
    told = ask(
        tmp_path,
        N150,
        "import os\n"
        "refused = said(ttnn.get_arch_name)\n"
        "del os.environ['TT_METAL_DEVICE_PROFILER']\n"
        "tell(refused=refused, arch=ttnn.get_arch_name())\n",
        TT_METAL_DEVICE_PROFILER=value,
    )

    assert told["refused"].startswith("RuntimeError: TT_FATAL @ ")
    text = "TT_METAL_DEVICE_PROFILER requires a Tracy-enabled build of tt-metal."
    assert f"\ninfo:\n{text}\n" in told["refused"]
    assert told["arch"] == "wormhole_b0"


@pytest.mark.parametrize("cluster", CLUSTERS, ids=str)
def test_a_cluster_and_its_first_device(tmp_path: Path, cluster: Cluster) -> None:
    told = ask(
        tmp_path,
        cluster,
        """
asked = dict(arch=ttnn.get_arch_name(), chips=ttnn.get_num_devices(), ids=ttnn.get_device_ids(),
             type=ttnn.cluster.get_cluster_type().name, default=ttnn.GetDefaultDevice())
device = ttnn.open_device(device_id=0)
grid = device.compute_with_storage_grid_size()
seen = dict(
    kind=type(device).__name__, shown=repr(device), device_arch=device.arch().name,
    shape=list(device.shape), shape_shown=str(device.shape), device_ids=device.get_device_ids(),
    grid=[grid.x, grid.y], programs=device.num_program_cache_entries(),
    realtime=ttnn.device.IsProgramRealtimeProfilerActive(),
    perf_data=ttnn.get_latest_programs_perf_data(),
)
ttnn.close_device(device)
tell(**asked, **seen)
""",
    )

    assert told == {
        "arch": cluster.arch,
        "chips": cluster.chips,
        "ids": list(range(cluster.chips)),
        "type": cluster.type,
        "default": None,
        "kind": "MeshDevice",
        "shown": "MeshDevice(1x1 grid, 1 devices)",
        "device_arch": cluster.arch.upper(),
        "shape": [1, 1],
        "shape_shown": "MeshShape([1, 1])",
        "device_ids": [0],
        "grid": list(cluster.grid),
        "programs": 0,
        "realtime": False,
        "perf_data": {},
    }
    assert not (tmp_path / "home" / "generated").exists()


@pytest.mark.parametrize("cluster", CLUSTERS, ids=str)
def test_a_mesh_of_all_chips(tmp_path: Path, cluster: Cluster) -> None:
    """The ids are those of the chips, in the order of the mesh."""
    told = ask(
        tmp_path,
        cluster,
        f"""
mesh = ttnn.open_mesh_device(ttnn.MeshShape(1, {cluster.chips}))
part = mesh.create_submesh(ttnn.MeshShape(1, 1))
tell(shape=list(mesh.shape), ids=sorted(mesh.get_device_ids()), arch=mesh.arch().name,
     part=[list(part.shape), len(part.get_device_ids())])
ttnn.close_mesh_device(mesh)
""",
    )

    assert told == {
        "shape": [1, cluster.chips],
        "ids": list(range(cluster.chips)),
        "arch": cluster.arch.upper(),
        "part": [[1, 1], 1],
    }


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


def test_ops_run_and_programs_are_kept(tmp_path: Path) -> None:
    """A mock device computes nothing, and yet all else is as with a real one."""
    told = ask(
        tmp_path,
        N150,
        """
with ttnn.manage_device(0) as device:
    a = tensor(device, 1, 1, 64, 64)
    counts = []
    for op in (ttnn.add, ttnn.matmul, ttnn.add, ttnn.multiply):
        result = op(a, a)
        counts.append(device.num_program_cache_entries())
    ttnn.synchronize_device(device)
    view = ttnn.get_memory_view(device, ttnn.BufferType.DRAM)
    fields = [name for name in dir(view) if not name.startswith("_")]
    tell(counts=counts, shape=list(result.shape), fields=fields,
         allocated=view.total_bytes_allocated_per_bank,
         whole=view.total_bytes_per_bank - view.total_bytes_free_per_bank)
""",
    )

    assert told["counts"] == [1, 2, 2, 3]
    assert told["shape"] == [1, 1, 64, 64]
    assert told["fields"] == [
        "block_table", "largest_contiguous_bytes_free_per_bank", "num_banks",
        "total_bytes_allocated_per_bank", "total_bytes_free_per_bank", "total_bytes_per_bank",
    ]  # fmt: skip
    assert told["allocated"] == told["whole"] > 0
