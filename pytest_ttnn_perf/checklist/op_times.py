"""Shares of time over the ops of a table, which most rules weigh their evidence by."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import lru_cache
from itertools import compress
from typing import TYPE_CHECKING

from pytest_ttnn_perf._support.wording import counted, percent
from pytest_ttnn_perf.checklist.derived import once_per_table
from pytest_ttnn_perf.model.attribution import short_code
from pytest_ttnn_perf.model.finding import Evidence

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pytest_ttnn_perf.model.ops import Op, OpTable, Signature


@dataclass(frozen=True, slots=True)
class Share:
    """The part of the kernel time that some ops take, all devices together."""

    ops: Sequence[Op]
    part_ns: float
    total_ns: float

    @property
    def count(self) -> int:
        """How many ops these are."""
        return len(self.ops)

    @property
    def fraction(self) -> float:
        """The part of the whole; 0 of nothing."""
        return self.part_ns / self.total_ns if self.total_ns else 0.0

    def told(self, noun: str) -> str:
        """Say how much of the time goes into how many of what these ops are called."""
        ops = counted(self.count, noun)
        return f"{percent(self.fraction)} of the kernel time goes into {ops}"


@once_per_table
def device_ops(table: OpTable) -> Sequence[Op]:
    """Return the ops that ran on a device."""
    return tuple(op for op in table if not op.host)


@once_per_table
def signature_numbers(table: OpTable) -> Sequence[int]:
    """Return the index of the signature of each op that ran on a device."""
    columns = table.columns
    rows = zip(columns.signature, columns.host, strict=True)
    return tuple(number for number, host in rows if not host)


def ops_like(table: OpTable, chosen: Callable[[Signature], bool]) -> Sequence[Op]:
    """Return the ops of a device with some signatures, in their order.

    Each signature is asked once: most ops of a table differ only in their numbers.
    """
    numbers = signature_numbers(table)
    wanted = {number for number in set(numbers) if chosen(table.signatures[number])}
    return tuple(compress(device_ops(table), map(wanted.__contains__, numbers)))


def share_of(table: OpTable, ops: Sequence[Op]) -> Share:
    """Return how much of the kernel time some ops take."""
    return Share(ops, sum(op.kernel_ns for op in ops), kernel_ns(table))


@once_per_table
def kernel_ns(table: OpTable) -> float:
    """Return the kernel time of all ops of devices."""
    return sum(op.kernel_ns for op in device_ops(table))


def worst_ops(
    ops: Iterable[Op],
    weight: Callable[[Op], float] = lambda op: op.kernel_ns,
    *,
    of: float | None,
    unit: str = "ns",
) -> tuple[Evidence, ...]:
    """Return what is to be said of ops, those of one signature as one, the heaviest first.

    ``of`` is the whole that they are shares of: the kernel time of a table, mostly.
    """
    weights: dict[str, float] = defaultdict(float)
    counts: dict[str, int] = defaultdict(int)
    for op in ops:
        name = described(op)
        weights[name] += weight(op)
        counts[name] += 1
    ordered = sorted(weights, key=lambda name: (-weights[name], name))
    return tuple(
        Evidence(
            f"{counts[name]} x {name}" if counts[name] > 1 else name,
            weights[name],
            unit,
            weights[name] / of if of else None,
        )
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
