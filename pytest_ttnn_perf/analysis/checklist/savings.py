"""What findings would save of a step: each alone, and beside those that would save more."""

from __future__ import annotations

from collections import defaultdict
from math import isfinite
from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_ttnn_perf.analysis.checklist.op_times import COMPILING_NS, heaviest_numbers, op_name
from pytest_ttnn_perf.analysis.ops.regions import once_per_table
from pytest_ttnn_perf.records.finding import Evidence

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pytest_ttnn_perf.analysis.checklist.rule import Answer, Limit
    from pytest_ttnn_perf.records.ops import Op, OpTable


class Claim(NamedTuple):
    """What a finding says that it would save: of ops, by their row, and of the time between ops."""

    ops_ns: Mapping[int, float]
    waiting_ns: float = 0.0


class Saving(NamedTuple):
    """What a finding would save of a step, and how much no larger saving has saved already."""

    saving_ns: float
    adds_ns: float


def rank_savings(claims: Mapping[str, Claim], times_ns: Mapping[int, float]) -> dict[str, Saving]:
    """Return what each claim amounts to, the largest first.

    ``times_ns`` are those of the ops that decide how long the step takes; a claim on another op
    saves nothing, and none saves more than there is. Of an op that a larger saving has made
    shorter, a claim saves the same part of what is left. Time between ops is one stock: the claims
    on it are claims on the same.

    >>> claims = {"TTP305": Claim({0: 50.0}), "TTP203": Claim({0: 100.0})}
    >>> rank_savings(claims, {0: 100.0})["TTP305"]
    Saving(saving_ns=50.0, adds_ns=0.0)
    """
    bounded = {name: _bounded(claim, times_ns) for name, claim in claims.items()}
    totals = {name: sum(ops.values()) + waiting for name, (ops, waiting) in bounded.items()}
    left = dict(times_ns)
    waited = 0.0
    ranked: dict[str, Saving] = {}
    for name in sorted(bounded, key=lambda name: (-totals[name], name)):
        ops, waiting = bounded[name]
        adds = max(0.0, waiting - waited)
        waited += adds
        for row, saved in ops.items():
            part = left[row] * (saved / times_ns[row])
            left[row] -= part
            adds += part
        ranked[name] = Saving(totals[name], min(adds, totals[name]))
    return ranked


def _bounded(claim: Claim, times_ns: Mapping[int, float]) -> Claim:
    ops = {
        row: min(saved, times_ns[row])
        for row, saved in sorted(claim.ops_ns.items())
        if isfinite(saved) and saved > 0 and times_ns.get(row, 0.0) > 0
    }
    waiting = claim.waiting_ns
    return Claim(ops, waiting if isfinite(waiting) and waiting > 0 else 0.0)


@once_per_table
def critical_ns(step: OpTable) -> Mapping[int, float]:
    """Return the kernel times, by row of a step, of the device that takes longest.

    The other devices of a mesh run beside it: what is saved there alone makes no step shorter.
    """
    by_device: dict[int, dict[int, float]] = {}
    columns = step.columns
    for row, (device, ns) in enumerate(zip(columns.device, columns.kernel_ns, strict=True)):
        if not columns.host[row]:
            by_device.setdefault(device, {})[row] = ns
    return max(by_device.values(), key=lambda times: sum(times.values()), default={})


#: What launching an op takes, however little it has to do: real replays have no shorter ones.
LAUNCH_NS: Final = 2_000.0
#: Why rules ask for that much: less is lost among what two runs of a step differ in.
WORTH: Final = "steps of one capture differ by up to 1 %"


class Placed(NamedTuple):
    """An op of a step, and its row."""

    row: int
    op: Op


@once_per_table
def critical_ops(step: OpTable) -> Sequence[Placed]:
    """Return the ops of the device that takes longest, in their order."""
    return tuple(Placed(row, step.op(row)) for row in critical_ns(step))


@once_per_table
def step_ns(step: OpTable) -> float:
    """Return the kernel time of a step: that of the device that takes longest."""
    return sum(critical_ns(step).values())


def waiting_ns(step: OpTable, *, unavoidable_ns: float) -> float:
    """Return how long the device that takes longest waits in a step for its next op.

    What cannot be avoided is left out for each op, and gaps in which programs were compiled.
    """
    gaps = (op.gap_ns or 0.0 for _, op in critical_ops(step)[1:])
    return sum(max(0.0, gap - unavoidable_ns) for gap in gaps if gap < COMPILING_NS)


def check_savings(
    step: OpTable,
    saved: Mapping[int, float],
    share: Limit,
    *,
    sentence: str,
    arithmetic: str,
    name: Callable[[Placed], str] = lambda placed: op_name(placed.op),
) -> Answer:
    """Answer with a finding where what can be saved is more than a share of the step.

    The evidence are the ops that it is saved of, those of one name together.
    """
    whole = step_ns(step)
    part = sum(saved.values()) / whole if whole else 0.0
    return share.at_most(part, sentence, _evidence(step, saved, whole, name)).saving(
        saved, arithmetic
    )


def _evidence(
    step: OpTable, saved: Mapping[int, float], whole: float, name: Callable[[Placed], str]
) -> Iterator[Evidence]:
    weights: dict[str, list[tuple[float, int]]] = defaultdict(list)
    for placed in critical_ops(step):
        if placed.row in saved:
            weights[name(placed)].append((saved[placed.row], placed.op.number))
    totals = {text: sum(ns for ns, _ in each) for text, each in weights.items()}
    for text in sorted(totals, key=lambda text: (-totals[text], text)):
        count = len(weights[text])
        times = f"{count} x {text}" if count > 1 else text
        share = totals[text] / whole if whole else None
        yield Evidence(times, totals[text], "ns", share, heaviest_numbers(weights[text]))


def microseconds(ns: float) -> str:
    """Return a time as it stands in an arithmetic.

    >>> microseconds(1_234_567)
    '1,234.6 µs'
    """
    return f"{ns / 1000:,.1f} µs"
