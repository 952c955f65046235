"""What findings would save of a step: each alone, and beside those that would save more."""

from __future__ import annotations

from collections import defaultdict
from math import inf, isfinite
from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_ttnn_perf._base.text import microseconds as _microseconds
from pytest_ttnn_perf.analysis.checklist.op_times import heaviest_numbers, op_name
from pytest_ttnn_perf.analysis.ops.regions import once_per_table
from pytest_ttnn_perf.records.finding import Evidence

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pytest_ttnn_perf.analysis.checklist.rule import Answer, Limit
    from pytest_ttnn_perf.records.ops import Op, OpTable


class Claim(NamedTuple):
    """What a finding says that it would save: of ops, by their row, and of the time between ops.

    Beside a saving of ops, ``waiting_ns`` are the gaps that go with them. One that counts ``last``
    takes nothing from the others: an upper bound, or what the project does without.
    """

    ops_ns: Mapping[int, float]
    waiting_ns: float = 0.0
    last: bool = False


class Saving(NamedTuple):
    """What a finding would save of a step, and how much no larger saving has saved already.

    ``taken_ns`` is what others have saved of it before, by who they are. ``gaps_ns`` is how
    much of what it adds is time between ops.
    """

    saving_ns: float
    adds_ns: float
    taken_ns: Mapping[str, float]
    gaps_ns: float = 0.0


def rank_savings(
    claims: Mapping[str, Claim], times_ns: Mapping[int, float], gaps_ns: float = inf
) -> dict[str, Saving]:
    """Return what each claim amounts to, the largest first.

    ``times_ns`` are those of the ops that decide how long the step takes; a claim on another op
    saves nothing, and none saves more than there is. A claim is how short an op can get: several on
    one op are ways to the same end, of which the shortest counts. Time between ops is one stock:
    the claims on it alone are claims on the same, and the gaps of ops that go, of ``gaps_ns`` in
    all, are part of it.

    >>> claims = {"TTP305": Claim({0: 90.0}), "TTP311": Claim({0: 50.0, 1: 10.0})}
    >>> rank_savings(claims, {0: 100.0, 1: 100.0})["TTP311"]
    Saving(saving_ns=60.0, adds_ns=10.0, taken_ns={'TTP305': 50.0}, gaps_ns=0.0)
    """
    bounded = {name: _bounded(claim, times_ns, gaps_ns) for name, claim in claims.items()}
    totals = {name: sum(one.ops_ns.values()) + one.waiting_ns for name, one in bounded.items()}
    order = sorted(bounded, key=lambda name: (bounded[name].last, -totals[name], name))
    saved: dict[int, tuple[float, str]] = {}
    waiting = _Waiting(gaps_ns)
    ranked: dict[str, Saving] = {}
    for name in order:
        claim, adds = bounded[name], 0.0
        taken: dict[str, float] = defaultdict(float)
        for row, ns in claim.ops_ns.items():
            already, by = saved.get(row, (0.0, ""))
            adds += max(0.0, ns - already)
            if already:
                taken[by] += min(ns, already)
            if ns > already:
                saved[row] = (ns, name)
        of_ops = sum(claim.ops_ns.values())
        between, by = waiting.take(name, claim.waiting_ns, adds / of_ops if of_ops else None)
        # Where nobody has saved gaps, those of ops go to whoever has saved the ops.
        by = by or max(taken, key=taken.__getitem__, default="")
        if by and between < claim.waiting_ns:
            taken[by] += claim.waiting_ns - between
        adds = min(adds + between, totals[name])
        ranked[name] = Saving(totals[name], adds, dict(taken), min(between, adds))
    return ranked


class _Waiting:
    """The time between ops that is saved already: by one claim on all of it, or with ops."""

    def __init__(self, gaps_ns: float) -> None:
        self._gaps_ns = gaps_ns
        self._alone_ns = self._with_ops_ns = 0.0
        self._by = ""

    def take(self, name: str, ns: float, new_ops: float | None) -> tuple[float, str]:
        """Return what a claim adds, and who had saved the rest.

        ``new_ops`` is the part of its ops that nobody has saved; None for a claim on time alone.
        """
        before, by = max(self._alone_ns, self._with_ops_ns), self._by
        if new_ops is None:
            self._alone_ns = max(self._alone_ns, ns)
        else:
            self._with_ops_ns = min(self._with_ops_ns + ns * new_ops, self._gaps_ns)
        adds = max(self._alone_ns, self._with_ops_ns) - before
        if adds:
            self._by = name
        return adds, by


def _bounded(claim: Claim, times_ns: Mapping[int, float], gaps_ns: float) -> Claim:
    ops = {
        row: min(saved, times_ns[row])
        for row, saved in sorted(claim.ops_ns.items())
        if isfinite(saved) and saved > 0 and times_ns.get(row, 0.0) > 0
    }
    waiting = claim.waiting_ns if isfinite(claim.waiting_ns) else 0.0
    if claim.ops_ns:  # gaps go with ops, and none with ops that take no time of the step
        waiting = min(waiting, gaps_ns) if ops else 0.0
    return claim._replace(ops_ns=ops, waiting_ns=max(0.0, waiting))


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


#: Rules write their arithmetic with what else is here.
microseconds: Final = _microseconds
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


#: What is less of a finding than this is not worth a line.
_TOLD: Final = 0.01


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
    worth = _TOLD * sum(totals.values())
    for text in sorted(totals, key=lambda text: (-totals[text], text)):
        if totals[text] < worth:
            break
        count = len(weights[text])
        times = f"{count} x {text}" if count > 1 else text
        share = totals[text] / whole if whole else None
        yield Evidence(times, totals[text], "ns", share, heaviest_numbers(weights[text]))
