"""The programs of a tt-lang log, and operands that are spread over a mesh of devices."""

from __future__ import annotations

import re
from math import prod
from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_ttnn_perf.analysis.checklist.measurements import is_on, number
from pytest_ttnn_perf.analysis.checklist.residency import activation_edges, operation_name
from pytest_ttnn_perf.records.ops import Category, category_of
from pytest_ttnn_perf.records.ttlang import ProblemKind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_ttnn_perf.records.finding import Subject
    from pytest_ttnn_perf.records.hardware import Scalar
    from pytest_ttnn_perf.records.ttlang import ProgramPerf, Roofline, Transfers, TtlangLog
    from pytest_ttnn_perf.records.ttnn_report import Operation, Report


_NO_SUMMARY: Final = "the output has no PERF SUMMARY: set TTLANG_PERF_DUMP=1"
_NO_ROOFLINE: Final = "the output has no ROOFLINE ANALYSIS: set TTLANG_AUTO_PROFILE=1"
#: Problems after which no number is what it seems to be.
_UNTRUSTED: Final = {
    ProblemKind.DROPPED: "the profiler dropped data: no number of this output can be trusted",
    ProblemKind.STALE: "the numbers may be of an earlier run",
}


class Kernel(NamedTuple):
    """A program, with the cores that its chip has for kernels; None where that is not told."""

    program: ProgramPerf
    cores_there: int | None

    def __str__(self) -> str:
        name = f" ({self.program.name})" if self.program.name else ""
        return f"program {self.program.program_id}{name}"

    @property
    def reads(self) -> int:
        """How many transfers brought data in."""
        return _count(self.program.dram_read) + _count(self.program.l1_read)

    @property
    def writes(self) -> int:
        """How many transfers took data out."""
        out = (self.program.dram_write, self.program.l1_write, self.program.multicast)
        return sum(map(_count, out))


def kernels_of(log: TtlangLog) -> list[Kernel] | str:
    """Return the programs, or why there are none to judge.

    Each summary lists the programs of earlier calls again, so that the last word counts.
    """
    problem = _distrust(log)
    if problem is not None:
        return problem
    kernels = {
        program.program_id: Kernel(program, summary.max_compute_cores or None)
        for summary in log.perf_summaries
        for program in summary.programs
    }
    return list(kernels.values()) or _NO_SUMMARY


def roofline_of(log: TtlangLog) -> Roofline | str:
    """Return the roofline of the kernel that works longest, or why there is none."""
    problem = _distrust(log)
    if problem is not None:
        return problem
    lines = [profile.roofline for profile in log.auto_profiles if profile.roofline is not None]
    bounded = [line for line in lines if line.bound is not None]
    return max(bounded, key=_work) if bounded else _NO_ROOFLINE


def _distrust(log: TtlangLog) -> str | None:
    return next(
        (_UNTRUSTED[problem.kind] for problem in log.problems if problem.kind in _UNTRUSTED), None
    )


def _work(line: Roofline) -> int:
    return max(line.memory_cycles or 0, line.compute_cycles or 0)


def _count(moved: Transfers | None) -> int:
    return (moved.transfers or 0) if moved is not None else 0


#: Why rules about data parallelism say nothing of a program without it.
NO_DATA_PARALLELISM: Final = (
    "no data parallelism: neither the fact data_parallel nor an input that is sharded on its batch"
)
#: What TTNN calls the operands of a call, by name or by position.
_FIRST: Final = ("input_tensor", "input_tensor_a", "0", "arg_0")
_SECOND: Final = ("weight_tensor", "input_tensor_b", "1", "arg_1")
_PRODUCTS: Final = frozenset({Category.MATMUL, Category.CONV})
_MOST_DEVICES: Final = 2**20
_MESH: Final = re.compile(r"distribution_shape=MeshShape\(\[([\d, ]+)\]\)")
_TENSOR: Final = re.compile(r"\btensor_id=(\d{1,18})")
_PLACEMENTS: Final = re.compile(r"placements=\[([^\]]*)\]")
_PLACEMENT: Final = re.compile(r"Placement(?:Shard\((-?\d{1,9})\)|Replicate\(\))")


class MeshOperand(NamedTuple):
    """An operand on a mesh: by each dimension of the mesh its extent, and the dimension it cuts.

    None stands for a copy on every device. ``tensor`` is its id, None where not told.
    """

    name: str
    tensor: int | None
    spread: tuple[tuple[int, int | None], ...]

    def ways(self, dimension: int | None = None) -> int:
        """Return in how many parts the tensor is cut, along one dimension or all together."""
        cuts = ((extent, cut) for extent, cut in self.spread if cut is not None)
        return prod(extent for extent, cut in cuts if dimension in {None, cut})


def data_parallel_ways(subject: Subject) -> int:
    """Return among how many devices the batch is shared: 1 for none, 0 for an unknown number."""
    stated = subject.facts.get("data_parallel")
    if stated is not None:
        return _stated_ways(subject, stated)
    operations = subject.report.operations if subject.report is not None else ()
    inputs = (placed for operation in operations for placed in _operands_on_mesh(operation, _FIRST))
    return max((placed.ways(0) for placed in inputs), default=1)


def _stated_ways(subject: Subject, stated: Scalar) -> int:
    ways = number(stated)
    if isinstance(stated, bool) or ways is None:
        return _devices(subject) if is_on(stated) else 1
    return int(ways) if 1 <= ways < _MOST_DEVICES else 1


def _devices(subject: Subject) -> int:
    if subject.ops is not None and len(subject.ops.devices) > 1:
        return len(subject.ops.devices)
    hardware = subject.observation.hardware if subject.observation else None
    extents = re.findall(r"\d+", (hardware.mesh or "") if hardware else "")
    return prod(map(int, extents)) if extents else 0


def weights_on_mesh(report: Report) -> Iterator[MeshOperand]:
    """Yield the second operands of matmuls and convolutions, where a report tells their place.

    Those that another operation computed are activations, as in attention.
    """
    computed = {edge.tensor for edge, _ in activation_edges(report)}
    for operation in report.operations:
        names = (operation.name.rpartition(".")[2], *operation.device_operations)
        if any(category_of(name) in _PRODUCTS for name in names):
            for placed in _operands_on_mesh(operation, _SECOND):
                if placed.tensor not in computed:
                    yield placed._replace(name=operation_name(report, operation))


def _operands_on_mesh(operation: Operation, names: tuple[str, ...]) -> Iterator[MeshOperand]:
    text = next((operation.arguments[name] for name in names if name in operation.arguments), "")
    placed = placed_in(text, operation.name)
    if placed is not None:
        yield placed


def placed_in(text: str, name: str) -> MeshOperand | None:
    """Return how the tensor that an argument says is placed on a mesh; None where it does not."""
    mesh, placements = _MESH.search(text), _PLACEMENTS.search(text)
    if mesh is None or placements is None:
        return None
    extents = map(int, re.findall(r"\d{1,9}", mesh[1]))
    cuts = [int(cut) if cut else None for cut in _PLACEMENT.findall(placements[1])]
    tensor = _TENSOR.search(text)
    spread = tuple(zip(extents, cuts, strict=False))
    return MeshOperand(name, int(tensor[1]) if tensor else None, spread)
