"""What a loaded ttnn is asked, and what stands for an answer that a release does not give."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from pytest_ttnn_perf.device.ttnn import (
    Runtime,
    chips_of,
    mesh_of,
    plain,
    settings_of,
)
from pytest_ttnn_perf.records.hardware import Hardware

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

Arch = enum.Enum("Arch", "WORMHOLE_B0 BLACKHOLE")
ClusterType = enum.Enum("ClusterType", "N150 P150_X4")
NUMBERED = enum.IntEnum("NUMBERED", "FIRST")


class Shape:
    """A shape that can be gone through."""

    def __init__(self, *sizes: int) -> None:
        self._sizes = sizes

    def __iter__(self) -> Iterator[int]:
        return iter(self._sizes)


@dataclass(frozen=True)
class Shown:
    """A shape that can only be printed."""

    text: str

    def __str__(self) -> str:
        return self.text


def runtime(**attributes: Any) -> Runtime:
    ttnn = ModuleType("ttnn")
    vars(ttnn).update(attributes)
    return Runtime(ttnn)


def answering(answer: object) -> Callable[..., Any]:
    """Return a function that answers so, or raises that."""

    def asked(*_: object) -> object:
        if isinstance(answer, Exception):
            raise answer
        return answer

    return asked


def device(**methods: object) -> Any:
    return SimpleNamespace(**{name: answering(answer) for name, answer in methods.items()})


@pytest.mark.parametrize(
    ("shape", "mesh"),
    [
        (Shape(1, 1), "1x1"),
        (Shape(1, 8), "1x8"),
        (Shape(2, 2, 4), "2x2x4"),
        (Shape(), "1x1"),
        ((8, 4), "8x4"),
        (Shown("MeshShape([1, 8])"), "1x8"),
        (Shown("MeshShape([4])"), "4"),
        (Shown("MeshShape([])"), "1x1"),
        (None, "1x1"),
    ],
    ids=["chip", "row", "3-d", "empty", "tuple", "shown", "shown line", "shown empty", "none"],
)
def test_the_shape_of_a_mesh(shape: object, mesh: str) -> None:
    assert mesh_of(SimpleNamespace(shape=shape)) == mesh


def test_a_release_and_a_device_that_tell_nothing() -> None:
    assert (mesh_of(object()), chips_of(object()), runtime().board) == ("1x1", (), "unknown")
    assert runtime().grid(object()) is None
    assert runtime().program_cache_entries([object()]) is None


def test_a_shape_that_tells_nothing_does_not_become_one() -> None:
    shapes = [Shown(f"<MeshShape object at {address}>") for address in ("0x7f01", "0x7f02")]
    first, second = (mesh_of(SimpleNamespace(shape=shape)) for shape in shapes)
    assert first == second


@pytest.mark.parametrize(
    ("ids", "chips"),
    [
        ([0], (0,)),
        ([4, 0, 7], (4, 0, 7)),
        ([], ()),
        (None, ()),
        (RuntimeError("closed"), ()),
    ],
    ids=["one", "several", "none", "no list", "error"],
)
def test_the_chips_of_a_mesh(ids: object, chips: tuple[int, ...]) -> None:
    assert chips_of(device(get_device_ids=ids)) == chips


@pytest.mark.parametrize(
    ("cluster", "board"),
    [
        (device(get_cluster_type=ClusterType.N150), "n150"),
        (device(get_cluster_type=ClusterType.P150_X4), "p150_x4"),
        (device(get_cluster_type="tt::ClusterType.T3K"), "t3k"),
        (device(get_cluster_type=RuntimeError("No chips detected")), "unknown"),
        (device(), "unknown"),
        (None, "unknown"),
    ],
    ids=["n150", "p150_x4", "text", "error", "older", "no cluster"],
)
def test_the_board_is_the_cluster_s_name_or_unknown(cluster: object, board: str) -> None:
    assert runtime(cluster=cluster).board == board


def test_the_hardware_of_a_device() -> None:
    mesh = device(arch=Arch.BLACKHOLE)
    mesh.shape = Shape(1, 4)
    found = runtime(cluster=device(get_cluster_type=ClusterType.P150_X4)).hardware(mesh)
    assert found == Hardware("blackhole", "p150_x4", "1x4")
    assert found.key == "blackhole-p150_x4-1x4"
    assert runtime().hardware(device(arch="wormhole_b0")).key == "wormhole_b0-unknown-1x1"


@pytest.mark.parametrize(
    ("size", "grid"),
    [
        (SimpleNamespace(x=8, y=7), "8x7"),
        (SimpleNamespace(x=13), None),
        (RuntimeError("closed"), None),
    ],
    ids=["told", "half", "error"],
)
def test_the_grid_of_a_device(size: object, grid: str | None) -> None:
    assert runtime().grid(device(compute_with_storage_grid_size=size)) == grid


@pytest.mark.parametrize(
    ("entries", "total"),
    [([], 0), ([0], 0), ([5], 5), ([5, 7], 12), ([5, RuntimeError("closed")], None)],
    ids=["no device", "empty", "one", "two", "error"],
)
def test_the_programs_in_the_caches(entries: Sequence[object], total: int | None) -> None:
    devices = [device(num_program_cache_entries=number) for number in entries]
    assert runtime().program_cache_entries(devices) == total


@pytest.mark.parametrize(
    ("captured", "is_capturing"),
    [([], False), ([False], False), ([False, True], True)],
    ids=["no device", "no", "one of two"],
)
def test_whether_a_trace_is_being_captured(captured: list[bool], is_capturing: bool) -> None:
    assert runtime(is_trace_capture_active=bool).is_capturing_trace(captured) is is_capturing


@pytest.mark.parametrize("error", [TypeError("one argument"), RuntimeError("closed")], ids=repr)
def test_where_nothing_tells_no_trace_is_being_captured(error: Exception) -> None:
    asked = runtime(is_trace_capture_active=answering(error))
    assert asked.is_capturing_trace([object()]) is False
    assert runtime().is_capturing_trace([object()]) is False


@pytest.mark.parametrize(
    ("value", "scalar"),
    [
        (None, None),
        (True, True),
        (0, 0),
        (0.5, 0.5),
        ("Row.MAJOR", "Row.MAJOR"),
        (Arch.WORMHOLE_B0, "wormhole_b0"),
        (Shown("DispatchCoreType.ETH"), "eth"),
        (NUMBERED.FIRST, "first"),
    ],
    ids=repr,
)
def test_an_argument_as_a_record_can_hold_it(value: object, scalar: object) -> None:
    assert plain(value) == scalar
    assert type(plain(value)) is type(scalar)


def test_settings_are_those_that_have_a_default_and_no_others() -> None:
    defaults = {"queues": 1, "size": 0, "arch": None}
    assert settings_of({}, defaults) == defaults
    given = {"size": 64, "arch": Arch.BLACKHOLE, "device_id": 3}
    assert settings_of(given, defaults) == {"queues": 1, "size": 64, "arch": "blackhole"}
