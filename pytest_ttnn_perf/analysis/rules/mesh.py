"""Devices that wait for the slowest one."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf.analysis.checklist.cores import computing_ns, ops_on_mesh
from pytest_ttnn_perf.analysis.checklist.kernels import (
    NO_DATA_PARALLELISM,
    data_parallel_ways,
    weights_on_mesh,
)
from pytest_ttnn_perf.analysis.checklist.matmuls import flag, whole
from pytest_ttnn_perf.analysis.checklist.op_times import op_name
from pytest_ttnn_perf.analysis.checklist.savings import (
    SHARE,
    advice_for,
    check_savings,
    step_ns,
)
from pytest_ttnn_perf.analysis.ops.names import producers
from pytest_ttnn_perf.analysis.ops.roofline import BYTES, size_of
from pytest_ttnn_perf.core.finding import Answer, Evidence, Input, Limit, Severity, Subject, rule
from pytest_ttnn_perf.core.text import counted, microseconds, percent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_ttnn_perf.analysis.checklist.cores import OnMesh
    from pytest_ttnn_perf.core.ops import OpTable, Signature


# A batch that does not divide among devices.


@rule("TTP701", "batch-not-divisible", Severity.ERROR, Input.DEVICE)
def batch_not_divisible(
    subject: Subject, *, left_over: Limit = Limit(0, "samples", "devices run in step")
) -> Answer:
    """The batch does not divide among the devices.

    ## What it finds
    With data parallelism, the samples that are left over when the batch is shared evenly.

    ## Why it matters
    All devices run the same program at the same time. Samples that are left over are dropped,
    padded, or leave the other devices idle for a whole pass.

    ## What to do
    Use a batch that is a multiple of the number of devices that share it.

    ## When it is no problem
    Without data parallelism the rule does not apply: with tensor parallelism, all devices work on
    the whole batch.

    ## Where it looks
    `batch` of the marker, else the fact `batch` or `batch_size`; and the fact `data_parallel`,
    which is the number of devices that share the batch or true for all of them. Without that fact,
    inputs that a report database says to be sharded along their first dimension.
    """
    ways = data_parallel_ways(subject)
    if ways == 1:
        return Answer.not_applicable(NO_DATA_PARALLELISM)
    if not ways:
        return Answer.not_measured("it is not known how many devices share the batch")
    batch = _batch(subject)
    if batch is None:
        return Answer.not_measured("the batch is not known: give it as batch= in the marker")
    left = batch % ways
    return left_over.at_most(left, f"a batch of {batch} among {ways} devices leaves {left} over")


def _batch(subject: Subject) -> int | None:
    marked = subject.observation.environment if subject.observation is not None else {}
    stated = (marked.get("batch"), subject.facts.get("batch"), subject.facts.get("batch_size"))
    numbers = (fact for fact in stated if isinstance(fact, int) and not isinstance(fact, bool))
    return next((number for number in numbers if number > 0), None)


# Weights that copies of a model do not have to themselves.


@rule("TTP702", "weights-not-replicated", Severity.INFO, Input.DEVICE)
def weights_not_replicated(
    subject: Subject, *, weights: Limit = Limit(0, "weights", "data parallelism copies all weights")
) -> Answer:
    """With data parallelism, weights are cut among devices.

    ## What it finds
    Weights of matmuls and convolutions that are sharded over the mesh although the batch is shared
    among its devices.

    ## Why it matters
    A copy of the model that has only a part of its weights needs collectives to get at the rest.

    ## What to do
    Load weights with `ttnn.ReplicateTensorToMesh`, and shard only the inputs.

    ## When it is no problem
    Models that are too large for one device, and meshes with data parallelism along one dimension
    and tensor parallelism along the other, have to shard their weights.

    ## Where it looks
    The placements of second operands in the arguments of a report database. Data parallelism is the
    fact `data_parallel`, or an input that is sharded along its first dimension.
    """
    if data_parallel_ways(subject) == 1:
        return Answer.not_applicable(NO_DATA_PARALLELISM)
    if subject.report is None:
        return Answer.not_measured(subject.why_absent(Input.REPORT))
    placed = list(weights_on_mesh(subject.report))
    if not placed:
        return Answer.not_measured("the report does not say how weights are placed on the mesh")
    cut = [weight for weight in placed if weight.ways() > 1]
    return weights.at_most(
        len(cut),
        f"cut among devices: {len(cut)} of {counted(len(placed), 'weight')}",
        (Evidence(weight.name, weight.ways(), "parts") for weight in cut),
    )


# Time that links take.

_NARROW: Final = "BFLOAT8_B"
#: What a collective takes however little it exchanges: real ones of a few KiB take 9 to 11 µs.
_LATENCY_NS: Final = 10_000.0
#: What one all-reduce exchanges in L1 in one go; a longer prompt takes two steps anyway.
_SMALL_BYTES: Final = 2**20
#: How far behind a reduce-scatter its all-gather may stand.
_NEAR: Final = 5
_SCATTER: Final = re.compile(r"reduce_?scatter", re.IGNORECASE)
_GATHER: Final = re.compile(r"all_?gather", re.IGNORECASE)
#: Ops that give the numbers that they take.
_PASSES: Final = re.compile(r"concat|typecast|tilize|reshape|view|copy|to_|slice|pad", re.I)
_PLACES: Final = re.compile(r"^(?:ArgMax|TopK|Sampling|Sort|PlusOne)", re.IGNORECASE)
OTHER_OPS: Final = "devices ran different ops"


@rule("TTP703", "collective-share", Severity.WARNING, Input.OPS)
def collective_share(step: OpTable, *, share: Limit = SHARE) -> Answer:
    """Devices exchange more, or more often, than they have to.

    ## What it finds
    What ops that exchange data among devices take on the device that comes last, and so waits for
    links alone: all-gather, reduce-scatter, all-reduce, all-to-all, sending and receiving. It finds
    wide formats, and a reduce-scatter with the all-gather of the same small tensor behind it. A
    collective that is fused into a matmul counts as a matmul.

    ## Why it matters
    More devices do not make a collective faster.

    ## What to do
    Exchange bfloat8_b, use all links with `num_links`, replace each reduce-scatter + all-gather
    pair with one `all_reduce_async` in L1, fuse the collective with the matmul beside it, and cut
    tensors along the dimension that needs fewer exchanges.

    ## What it saves
    Of each collective what the fastest device takes beyond 10 µs × (1 − 1.0625 ÷ bytes of an
    element): what bfloat8_b leaves out. An all-gather of up to 1 MiB right behind a reduce-scatter
    is saved as a whole: one all-reduce does both. What devices wait for each other is imbalance,
    and for TTP704.

    ## When it is no problem
    Where the sum has to be exact. Exchanges of a few KiB take as long in any format. Integers, and
    what comes from a search for places, such as tokens, keep their format.

    ## Where it looks
    OP CODE, `num_links`, the data type of inputs and the kernel time of the op table, on all
    devices.
    """
    if len(step.devices) < 2:
        return Answer.not_applicable("one device")
    ops = ops_on_mesh(step)
    if ops is None:
        return Answer.not_measured(OTHER_OPS)
    collectives = [each for each in ops if each.is_collective]
    took = sum(each.fastest_ns for each in collectives)
    saved, joined = _saved(ops)
    time = percent(took / (step_ns(step) or 1.0))
    exchanges = counted(len(collectives), "collective")
    return check_savings(
        step,
        saved,
        share,
        sentence=f"{time} of a step goes into {exchanges}, excluding time spent waiting for other "
        "devices",
        arithmetic=f"bfloat8_b beyond 10 µs each, all-reduce for small pairs: "
        f"{microseconds(took)} → {microseconds(took - sum(saved.values()))}",
    ).with_fix(
        advice_for(
            (_ONE_OP if each.row in joined else _narrow(each), saved[each.row])
            for each in collectives
            if each.row in saved
        )
    )


_ONE_OP: Final = "replace each reduce-scatter + all-gather pair with one `all_reduce_async` in L1"


def _narrow(collective: OnMesh) -> str:
    one_link = whole(collective.op.attributes, "num_links") == 1
    return "exchange bfloat8_b" + (", over all links (`num_links`)" if one_link else "")


def _saved(ops: Sequence[OnMesh]) -> tuple[dict[int, float], set[int]]:
    """Return what each collective would save, and those whose work one before them can do."""
    saved: dict[int, float] = {}
    joined: set[int] = set()
    scattered: int | None = None
    for at, each in enumerate(ops):
        if not each.is_collective:
            continue
        signature = each.op.signature
        code = signature.code
        part = 0.0 if _holds_places(ops, at) else _narrower(signature)
        beyond = max(0.0, each.fastest_ns - _LATENCY_NS) * part
        gathers = _GATHER.search(code) is not None
        if gathers and scattered is not None and at - scattered <= _NEAR and _is_small(signature):
            beyond = each.fastest_ns
            joined.add(each.row)
        scattered = at if _SCATTER.search(code) else None
        if beyond:
            saved[each.row] = beyond
    return saved, joined


def _holds_places(ops: Sequence[OnMesh], at: int) -> bool:
    """Tell whether an op exchanges what a search gave: places, which have to stay exact."""
    signatures = [each.op.signature for each in ops[: at + 1]]
    nearest = producers(at, signatures.__getitem__)
    for _ in range(_NEAR):
        if any(_gives_places(signatures[place]) for place in nearest):
            return True
        through = [place for place in nearest if _PASSES.search(signatures[place].op)]
        nearest = [each for place in through for each in producers(place, signatures.__getitem__)]
    return False


def _gives_places(signature: Signature) -> bool:
    return _PLACES.search(signature.code) is not None or _is_whole_number(signature)


def _is_whole_number(signature: Signature) -> bool:
    return any("INT" in tensor.dtype for tensor in (*signature.inputs, *signature.outputs))


def _is_small(signature: Signature) -> bool:
    return sum(map(size_of, signature.outputs)) <= _SMALL_BYTES


def _narrower(signature: Signature) -> float:
    """Return what part of its bytes an exchange saves in bfloat8_b; integers have to stay."""
    if _is_whole_number(signature):
        return 0.0
    format_bytes = BYTES.get(signature.inputs[0].dtype, 0.0) if signature.inputs else 0.0
    return max(0.0, 1 - BYTES[_NARROW] / format_bytes) if format_bytes else 0.0


@rule("TTP704", "device-imbalance", Severity.WARNING, Input.OPS)
def device_imbalance(step: OpTable, *, excess: Limit = SHARE) -> Answer:
    """One device works longer than the others, which wait for it.

    ## What it finds
    How much longer the device that computes longest takes than the mean of all devices, the devices
    that take as long, and the ops in which they do. Collectives do not count as work: in them, the
    faster devices wait.

    ## Why it matters
    The slowest device decides how long a step takes.

    ## What to do
    Look at the ops that are named, which take longer on that device than on the others: cut
    tensors evenly, and spread experts and layers so that all devices have as much to do. Causal
    attention over a ring of devices has more to do on those with later tokens: give each an early
    and a late part of the sequence, with `is_balanced=True`.

    ## What it saves
    The time by which that device exceeds the mean.

    ## When it is no problem
    Where only some devices are meant to work in the window, as in a pipeline.

    ## Where it looks
    DEVICE ID, OP CODE and the kernel time of the op table, op by op on all devices.
    """
    if len(step.devices) < 2:
        return Answer.not_applicable("one device")
    ops = ops_on_mesh(step)
    if ops is None:
        return Answer.not_measured(OTHER_OPS)
    times, whole = computing_ns(ops), step_ns(step)
    mean = sum(times.values()) / len(times)
    if not mean or not whole:
        return Answer.not_measured("no device ran anything but collectives")
    last = max(times, key=lambda device: (times[device], -device))
    above = times[last] - mean
    late = sorted(
        ((each.times_ns[last] - each.mean_ns, each) for each in ops if not each.is_collective),
        key=lambda pair: (-pair[0], pair[1].row),
    )
    # The device that takes longest is late itself, or waits for a late one in its collectives.
    held = {
        each.row: each.op.kernel_ns - (each.fastest_ns if each.is_collective else each.mean_ns)
        for each in ops
    }
    held = {row: ns for row, ns in held.items() if ns > 0}
    scale = min(1.0, above / (sum(held.values()) or 1.0))
    group = _as_long(late[0][1], last) if late else (last,)
    return (
        excess.at_most(
            above / whole,
            f"{_devices(group)} {microseconds(times[last])}, {percent(above / mean)} longer than "
            f"the mean of {counted(len(times), 'device')}",
            (
                Evidence(
                    f"{op_name(each.op)}{_setting(each)} on device {last}",
                    ns,
                    "ns",
                    ns / whole,
                    (each.op.number,),
                )
                for ns, each in late
                if ns > 0
            ),
        )
        .saving(
            {row: ns * scale for row, ns in held.items()},
            f"device {last} − mean of {len(times)}: {microseconds(times[last])} − "
            f"{microseconds(mean)}",
        )
        .with_fix(_BALANCED if late and _setting(late[0][1]) else "")
    )


_BALANCED: Final = (
    "Set `is_balanced=True`, with an early and a late part of the sequence on each device: later "
    "tokens attend to more."
)
#: Devices that take nearly as long as the slowest are as late.
_NEARLY: Final = 0.9


def _as_long(each: OnMesh, last: int) -> tuple[int, ...]:
    """Return the devices on which an op takes about as long as on the last one."""
    slowest = each.times_ns[last]
    return tuple(sorted(at for at, ns in each.times_ns.items() if ns >= _NEARLY * slowest))


def _devices(numbers: tuple[int, ...]) -> str:
    if len(numbers) == 1:
        return f"device {numbers[0]} computes"
    return f"devices {', '.join(map(str, numbers[:-1]))} and {numbers[-1]} compute up to"


def _setting(each: OnMesh) -> str:
    """Return the setting that makes causal attention uneven."""
    attributes = each.op.attributes
    uneven = flag(attributes, "is_causal") and flag(attributes, "is_balanced") is False
    return " (is_causal=true, is_balanced=false)" if uneven else ""
