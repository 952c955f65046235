"""What findings would save of a step: each alone, and beside those that would save more."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, NamedTuple

from pytest_ttnn_perf.analysis.ops.regions import once_per_table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_ttnn_perf.records.ops import OpTable


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
