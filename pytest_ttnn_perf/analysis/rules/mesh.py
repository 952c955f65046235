"""Several devices: how batch and weights are shared, collectives, imbalance."""

from __future__ import annotations

import re
from math import prod
from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_ttnn_perf.analysis.checklist.operands import (
    activation_edges,
    operation_name,
    runs_product,
)
from pytest_ttnn_perf.analysis.checklist.products import is_routed
from pytest_ttnn_perf.analysis.checklist.savings import (
    SHARE,
    advice_for,
    check_savings,
    critical_ns,
    op_name,
    share_of_step,
    step_ns,
)
from pytest_ttnn_perf.analysis.ops.names import flag, producers, whole
from pytest_ttnn_perf.analysis.ops.regions import once_per_table
from pytest_ttnn_perf.analysis.ops.roofline import BYTES, size_of
from pytest_ttnn_perf.core.finding import Answer, Evidence, Input, Limit, Severity, Subject, rule
from pytest_ttnn_perf.core.ops import Category
from pytest_ttnn_perf.core.text import counted, duration, percent
from pytest_ttnn_perf.gate.rules_on_numbers import is_on, number

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_ttnn_perf.analysis.readers.report_db import Operation
    from pytest_ttnn_perf.core.ops import Op, OpTable, Signature

_NO_DATA_PARALLELISM: Final = (
    "no data parallelism: neither the fact data_parallel nor an input that is sharded on its batch"
)
#: What TTNN calls the operands of a call, by name or by position.
_FIRST: Final = ("input_tensor", "input_tensor_a", "0", "arg_0")
_SECOND: Final = ("weight_tensor", "input_tensor_b", "1", "arg_1")
_MOST_DEVICES: Final = 2**20
_MESH: Final = re.compile(r"distribution_shape=MeshShape\(\[([\d, ]+)\]\)")
_TENSOR: Final = re.compile(r"\btensor_id=(\d{1,18})")
_PLACEMENTS: Final = re.compile(r"placements=\[([^\]]*)\]")
_PLACEMENT: Final = re.compile(r"Placement(?:Shard\((-?\d{1,9})\)|Replicate\(\))")


class MeshOperand(NamedTuple):
    """An operand on a mesh: extent and cut dimension per axis.

    None stands for a copy on every device. ``tensor`` is its id, None where not told.
    """

    tensor: int | None
    spread: tuple[tuple[int, int | None], ...]

    def ways(self, dimension: int | None = None) -> int:
        """Count the parts, along one dimension or all."""
        cuts = ((extent, cut) for extent, cut in self.spread if cut is not None)
        return prod(extent for extent, cut in cuts if dimension in {None, cut})

    def ways_of_batch(self, batch: MeshOperand | None, ways: int) -> int:
        """Count the parts along axes that share the batch.

        Where the batch does not show it, these are all axes, or the one with as many devices.
        """
        if batch is not None and batch.ways(0) > 1:
            shares = [cut == 0 for _, cut in batch.spread]
        else:
            whole_mesh = ways >= prod(extent for extent, _ in self.spread)
            shares = [whole_mesh or extent == ways for extent, _ in self.spread]
        own = zip(self.spread, shares, strict=False)
        return prod(extent for (extent, cut), shared in own if shared and cut is not None)


def placed_in(text: str) -> MeshOperand | None:
    """Return the placement that an argument states; None without one."""
    mesh, placements = _MESH.search(text), _PLACEMENTS.search(text)
    if mesh is None or placements is None:
        return None
    extents = map(int, re.findall(r"\d{1,9}", mesh[1]))
    cuts = [int(cut) if cut else None for cut in _PLACEMENT.findall(placements[1])]
    tensor = _TENSOR.search(text)
    return MeshOperand(int(tensor[1]) if tensor else None, tuple(zip(extents, cuts, strict=False)))


def _operand_on_mesh(operation: Operation, names: tuple[str, ...]) -> MeshOperand | None:
    given = operation.arguments
    return placed_in(next((given[name] for name in names if name in given), ""))


def _data_parallel_ways(subject: Subject) -> int:
    """Count the devices that share a batch; 0 if unknown."""
    stated = subject.facts.get("data_parallel")
    if stated is None:
        operations = subject.report.operations if subject.report is not None else ()
        inputs = (_operand_on_mesh(operation, _FIRST) for operation in operations)
        return max((placed.ways(0) for placed in inputs if placed is not None), default=1)
    ways = number(stated)
    if not isinstance(stated, bool) and ways is not None:
        return int(ways) if 1 <= ways < _MOST_DEVICES else 1
    if not is_on(stated):
        return 1
    if subject.ops is not None and len(subject.ops.devices) > 1:
        return len(subject.ops.devices)
    hardware = subject.observation.hardware if subject.observation else None
    extents = re.findall(r"\d+", (hardware.mesh or "") if hardware else "")
    return prod(map(int, extents)) if extents else 0


@rule("TTP701", "batch-not-divisible", Severity.ERROR, Input.DEVICE)
def batch_not_divisible(
    subject: Subject, *, left_over: Limit = Limit(0, "samples", "devices run in step")
) -> Answer:
    """The batch does not divide among the devices.

    Finds with data parallelism, the samples that are left over when the batch is shared evenly.
    They are dropped, padded, or leave the other devices idle for a pass.

    ## What to do
    Use a batch that is a multiple of the number of devices that share it.

    ## When it is no problem
    Without data parallelism (the fact `data_parallel`, the number of devices that share the batch
    or true for all, or inputs that a report says to be cut along their first dimension).
    """
    ways = _data_parallel_ways(subject)
    if ways == 1:
        return Answer.not_applicable(_NO_DATA_PARALLELISM)
    if not ways:
        return Answer.not_measured("it is not known how many devices share the batch")
    marked = subject.observation.environment if subject.observation is not None else {}
    stated = (marked.get("batch"), subject.facts.get("batch"), subject.facts.get("batch_size"))
    numbers = (fact for fact in stated if isinstance(fact, int) and not isinstance(fact, bool))
    batch = next((each for each in numbers if each > 0), None)
    if batch is None:
        return Answer.not_measured("the batch is not known: give it as batch= in the marker")
    left = batch % ways
    return left_over.at_most(left, f"a batch of {batch} among {ways} devices leaves {left} over")


@rule("TTP702", "weights-not-replicated", Severity.INFO, Input.DEVICE)
def weights_not_replicated(
    subject: Subject, *, weights: Limit = Limit(0, "weights", "data parallelism copies all weights")
) -> Answer:
    """With data parallelism, weights are cut among devices.

    Finds weights of matmuls and convolutions that are sharded over the mesh although the batch is
    shared among its devices, as in TTP701: a copy of the model needs collectives to get at the
    rest. Only an axis of the mesh along which the batch is cut counts: along the other, tensor
    parallelism cuts weights by design.

    ## What to do
    Load weights with `ttnn.ReplicateTensorToMesh`, and shard only the inputs.

    ## When it is no problem
    Models that are too large for one device have to shard their weights.
    """
    report = subject.report
    ways = _data_parallel_ways(subject)
    if ways == 1:
        return Answer.not_applicable(_NO_DATA_PARALLELISM)
    if report is None:
        return Answer.not_measured(subject.why_absent(Input.REPORT))
    # What another operation computed is an activation, as in attention.
    computed = {edge.tensor for edge, _ in activation_edges(report)}
    placed = [
        (operation_name(report, each), operand.ways_of_batch(_operand_on_mesh(each, _FIRST), ways))
        for each in report.operations
        if runs_product(each) and (operand := _operand_on_mesh(each, _SECOND)) is not None
        if operand.tensor not in computed
    ]
    if not placed:
        return Answer.not_measured("the report does not say how weights are placed on the mesh")
    cut = [(name, ways) for name, ways in placed if ways > 1]
    return weights.at_most(
        len(cut),
        f"cut among devices: {len(cut)} of {counted(len(placed), 'weight')}",
        (Evidence(name, ways, "parts") for name, ways in cut),
    )


class _OnMesh(NamedTuple):
    """An op of the slowest device, with its time on each."""

    row: int
    op: Op
    times_ns: Mapping[int, float]

    @property
    def is_collective(self) -> bool:
        """True if devices exchange data in it."""
        return self.op.signature.category is Category.COLLECTIVE

    @property
    def fastest_ns(self) -> float:
        """The time on the device that came last, which waits least."""
        return min(self.times_ns.values())

    @property
    def mean_ns(self) -> float:
        """The mean of all devices."""
        return sum(self.times_ns.values()) / len(self.times_ns)


@once_per_table
def _ops_on_mesh(step: OpTable) -> Sequence[_OnMesh] | None:
    """Return ops with their times by device; None if they differ."""
    columns = step.columns
    by_device: dict[int, list[int]] = {}
    for row, (device, host) in enumerate(zip(columns.device, columns.host, strict=True)):
        if not host:
            by_device.setdefault(device, []).append(row)
    codes = [
        [step.signatures[columns.signature[row]].op for row in rows] for rows in by_device.values()
    ]
    if any(each != codes[0] for each in codes):
        return None
    return tuple(
        _OnMesh(
            row,
            step.op(row),
            {device: columns.kernel_ns[rows[at]] for device, rows in by_device.items()},
        )
        for at, row in enumerate(critical_ns(step))
    )


#: What a collective takes however little it exchanges: real ones of a few KiB take 9 to 11 µs.
_LATENCY_NS: Final = 10_000.0
#: What is smaller takes as long in any format: 32x3072 and 32x5376 cost alike.
_LATENT_BYTES: Final = 350_000.0
#: What one all-reduce exchanges in L1 in one go; a longer prompt takes two steps anyway.
_SMALL_BYTES: Final = 2**20
#: How far behind a reduce-scatter its all-gather may stand.
_NEAR: Final = 5
_SCATTER: Final = re.compile(r"reduce_?scatter", re.IGNORECASE)
_GATHER: Final = re.compile(r"all_?gather", re.IGNORECASE)
#: Ops that give the numbers that they take.
_PASSES: Final = re.compile(r"concat|typecast|tilize|reshape|view|copy|to_|slice|pad", re.I)
_PLACES: Final = re.compile(r"^(?:ArgMax|TopK|Sampling|Sort|PlusOne)", re.IGNORECASE)
_ONE_OP: Final = "replace each reduce-scatter + all-gather pair with one `all_reduce_async` in L1"
#: A broadcast to all devices, and the ops that sum up what each has got.
_SUMS_UP: Final = re.compile(r"^Concat\S* (?:MorehSum|Sum|Reduce)", re.IGNORECASE)
_SUMMED: Final = "replace all-broadcast, concat and sum with one `all_reduce`"
_OTHER_OPS: Final = "devices ran different ops"


@rule("TTP703", "collective-share", Severity.WARNING, Input.OPS)
def collective_share(step: OpTable, *, share: Limit = SHARE) -> Answer:
    """Devices exchange more, or more often, than they have to.

    Finds what ops that exchange data among devices (all-gather, reduce-scatter, all-reduce,
    all-to-all, sending and receiving) take on the device that comes last, and so waits for links
    alone. It finds wide formats, and a reduce-scatter with the all-gather of the same small tensor
    behind it. A collective that is fused into a matmul counts as a matmul.

    ## What to do
    First use fewer collectives: one `all_reduce_async` in L1 for each reduce-scatter + all-gather
    pair, and keep the residual sharded. Then use all links (`num_links`: 2 on Blackhole, 4 on a
    Galaxy of Wormhole). Then set `ttnn.Topology.Ring`, as Linear takes 1.3 to 1.7 times as long,
    and persistent buffers. Last comes bfloat8_b, path by path and only if PCC bears it. Fused forms
    (`all_gather_matmul` and the like) have to be measured: some are slower.

    ## What it saves
    Of each collective what the fastest device takes beyond 10 µs × (1 − 1.0625 ÷ bytes of an
    element), from 350 kB on: what is smaller takes as long for its latency, unless it has one link
    alone. An all-gather of up to 1 MiB right behind a reduce-scatter is saved entirely. What
    devices wait for each other is for TTP704.

    ## When it is no problem
    Where the sum has to be exact. Integers, and what comes from a search for places, such as
    tokens, keep their format.
    """
    if len(step.devices) < 2:
        return Answer.not_applicable("one device")
    ops = _ops_on_mesh(step)
    if ops is None:
        return Answer.not_measured(_OTHER_OPS)
    collectives = [each for each in ops if each.is_collective]
    took = sum(each.fastest_ns for each in collectives)
    saved, joined = _saved_exchanges(ops)
    of_saved = (
        took
        + sum(each.op.kernel_ns for each in ops if each.row in saved)
        - sum(each.op.kernel_ns for each in collectives if each.row in saved)
    )

    def advice(each: _OnMesh) -> str:
        if each.row in joined:
            return joined[each.row]
        steps = ["use all links (`num_links`)"] if _has_one_link(each) else []
        steps += ["set `ttnn.Topology.Ring`"] if "Linear" in each.op.attributes else []
        return ", then ".join([*steps, "exchange bfloat8_b where PCC bears it"])

    return check_savings(
        step,
        saved,
        share,
        sentence=f"{share_of_step(step, took)} of a step goes into "
        f"{counted(len(collectives), 'collective')}, excluding time spent waiting for other "
        "devices",
        arithmetic=f"bfloat8_b beyond 10 µs each, all-reduce for small pairs: "
        f"{duration(of_saved)} → {duration(of_saved - sum(saved.values()))}",
    ).with_fix(advice_for((advice(each), saved[each.row]) for each in ops if each.row in saved))


def _saved_exchanges(ops: Sequence[_OnMesh]) -> tuple[dict[int, float], dict[int, str]]:
    saved: dict[int, float] = {}
    joined: dict[int, str] = {}
    scattered: int | None = None
    for at, each in enumerate(ops):
        if not each.is_collective:
            continue
        signature = each.op.signature
        format_bytes = BYTES.get(signature.inputs[0].dtype, 0.0) if signature.inputs else 0.0
        narrower = max(0.0, 1 - BYTES["BFLOAT8_B"] / format_bytes) if format_bytes else 0.0
        stays = _is_whole_number(signature) or _holds_places(ops, at)
        beyond = 0.0 if stays else max(0.0, each.fastest_ns - _LATENCY_NS) * narrower
        near = scattered is not None and at - scattered <= _NEAR
        moved = sum(map(size_of, signature.outputs))
        small = moved <= _SMALL_BYTES
        if moved < _LATENT_BYTES and not _has_one_link(each):
            beyond = 0.0
        if near and small and _GATHER.search(signature.code):
            beyond = each.fastest_ns
            joined[each.row] = _ONE_OP
        summing = ops[at + 1 : at + 3]
        codes = " ".join(after.op.signature.code for after in summing)
        if small and "AllBroadcast" in signature.code and _SUMS_UP.search(codes):
            beyond = max(0.0, each.fastest_ns - _LATENCY_NS)
            joined.update(dict.fromkeys((each.row, *(after.row for after in summing)), _SUMMED))
            saved.update((after.row, after.op.kernel_ns) for after in summing)
        scattered = at if _SCATTER.search(signature.code) else None
        if beyond:
            saved[each.row] = beyond
    return saved, joined


def _has_one_link(each: _OnMesh) -> bool:
    return whole(each.op.attributes, "num_links") == 1


def _holds_places(ops: Sequence[_OnMesh], at: int) -> bool:
    """Return whether an op exchanges exact places of a search."""
    signatures = [each.op.signature for each in ops[: at + 1]]
    nearest = producers(at, signatures.__getitem__)
    for _ in range(_NEAR):
        made = [signatures[place] for place in nearest]
        if any(_PLACES.search(each.code) or _is_whole_number(each) for each in made):
            return True
        through = [place for place in nearest if _PASSES.search(signatures[place].op)]
        nearest = [each for place in through for each in producers(place, signatures.__getitem__)]
    return False


def _is_whole_number(signature: Signature) -> bool:
    return any("INT" in tensor.dtype for tensor in (*signature.inputs, *signature.outputs))


_BALANCED: Final = (
    "Set `is_balanced=True`, with an early and a late part of the sequence on each device: later "
    "tokens attend to more."
)
#: Devices that take nearly as long as the slowest are as late.
_NEARLY: Final = 0.9


@rule("TTP704", "device-imbalance", Severity.WARNING, Input.OPS)
def device_imbalance(step: OpTable, *, excess: Limit = SHARE) -> Answer:
    """One device works longer than the others, which wait for it.

    Finds how much longer the device that computes longest takes than the mean of all devices, the
    devices that take as long, and the ops in which they do. Collectives do not count as work: in
    them, the faster devices wait.

    ## What to do
    Look at the ops that are named, which take longer on that device than on the others: cut tensors
    evenly, and spread layers so that all devices have as much to do. Causal attention
    over a ring of devices has more to do on those with later tokens: give each an early and a late
    part of the sequence, with `is_balanced=True`.

    ## What it saves
    The time by which that device exceeds the mean.

    ## When it is no problem
    Where only some devices are meant to work in the window, as in a pipeline.
    """
    if len(step.devices) < 2:
        return Answer.not_applicable("one device")
    ops = _ops_on_mesh(step)
    if ops is None:
        return Answer.not_measured(_OTHER_OPS)
    ops = [each for each in ops if not is_routed(each.op.signature)]
    computing = [each for each in ops if not each.is_collective]
    times = {at: sum(each.times_ns[at] for each in computing) for at in step.devices}
    mean, whole = sum(times.values()) / len(times), step_ns(step)
    if not mean or not whole:
        return Answer.not_measured("no device ran anything but collectives")
    last = max(times, key=lambda device: (times[device], -device))
    above = times[last] - mean
    late = sorted(computing, key=lambda each: (each.mean_ns - each.times_ns[last], each.row))
    # The device that takes longest is late itself, or waits for a late one in its collectives.
    held = {
        each.row: each.op.kernel_ns - (each.fastest_ns if each.is_collective else each.mean_ns)
        for each in ops
    }
    held = {row: ns for row, ns in held.items() if ns > 0}
    scale = min(1.0, above / (sum(held.values()) or 1.0))
    slowest = late[0].times_ns
    group = sorted(at for at, ns in slowest.items() if ns >= _NEARLY * slowest[last])
    devices = f"device {last} computes"
    if len(group) > 1:
        devices = f"devices {', '.join(map(str, group[:-1]))} and {group[-1]} compute up to"
    evidence = []
    for each in late:
        ns = each.times_ns[last] - each.mean_ns
        uneven = " (is_causal=true, is_balanced=false)" if _is_uneven(each) else ""
        if ns > 0:
            name = f"{op_name(each.op)}{uneven} on device {last}"
            evidence.append(Evidence(name, ns, "ns", ns / whole, (each.op.number,)))
    return (
        excess.at_most(
            above / whole,
            f"{devices} {duration(times[last])}, {percent(above / mean)} longer than "
            f"the mean of {counted(len(times), 'device')}",
            evidence,
        )
        .saving(
            {row: ns * scale for row, ns in held.items()},
            f"device {last} − mean of {len(times)}: {duration(times[last])} − {duration(mean)}",
        )
        .with_fix(_BALANCED if _is_uneven(late[0]) else "")
    )


def _is_uneven(each: _OnMesh) -> bool:
    attributes = each.op.attributes
    return flag(attributes, "is_causal") is True and flag(attributes, "is_balanced") is False
