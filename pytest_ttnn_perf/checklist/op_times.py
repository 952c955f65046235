"""Shares of time over the ops of a table, which most rules weigh their evidence by."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from pytest_ttnn_perf.model.attribution import short_code
from pytest_ttnn_perf.model.finding import Evidence

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pytest_ttnn_perf.model.ops import Op, OpTable, Signature

#: The table that was asked for last, and its ops: rules ask for those of one after another.
_LAST: list[tuple[OpTable, tuple[Op, ...]]] = []


@dataclass(frozen=True, slots=True)
class Share:
    """The part of the kernel time that some ops take, all devices together."""

    part_ns: float
    total_ns: float
    count: int

    @property
    def fraction(self) -> float:
        """The part of the whole; 0 of nothing."""
        return self.part_ns / self.total_ns if self.total_ns else 0.0


def device_ops(table: OpTable) -> Sequence[Op]:
    """Return the ops that ran on a device; built once for the rules that ask after one another."""
    if _LAST and _LAST[0][0] is table:
        return _LAST[0][1]
    ops = tuple(op for op in table if not op.host)
    _LAST[:] = [(table, ops)]
    return ops


def share_of(table: OpTable, chosen: Callable[[Op], bool]) -> Share:
    """Return how much of the kernel time some ops take."""
    part = total = 0.0
    count = 0
    for op in device_ops(table):
        total += op.kernel_ns
        if chosen(op):
            part += op.kernel_ns
            count += 1
    return Share(part, total, count)


def worst_ops(
    ops: Iterable[Op], weight: Callable[[Op], float] = lambda op: op.kernel_ns, *, unit: str = "ns"
) -> tuple[Evidence, ...]:
    """Return what is to be said of ops, those of one signature as one, the heaviest first."""
    weights: dict[str, float] = defaultdict(float)
    counts: dict[str, int] = defaultdict(int)
    for op in ops:
        name = described(op)
        weights[name] += weight(op)
        counts[name] += 1
    ordered = sorted(weights, key=lambda name: (-weights[name], name))
    return tuple(
        Evidence(f"{counts[name]} x {name}" if counts[name] > 1 else name, weights[name], unit)
        for name in ordered
    )


def described(op: Op) -> str:
    """Return an op as people call it: its code and the shape of what goes in first.

    The second operand of a matrix product is named as well: all projections take the same first.
    """
    return _described(op.signature)


@lru_cache(maxsize=4096)
def _described(signature: Signature) -> str:
    operands = signature.inputs or signature.outputs
    shapes = ["x".join(map(str, tensor.logical or tensor.padded)) for tensor in operands]
    named = shapes[:2] if "Matmul" in signature.op else shapes[:1]
    return " ".join([short_code(signature.op), " @ ".join(named)]).strip()


def has_operands(table: OpTable) -> bool:
    """Tell whether a capture says anything of operands; a device's own report does not."""
    return any(signature.inputs or signature.outputs for signature in table.signatures)
