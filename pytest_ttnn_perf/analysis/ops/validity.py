"""Validity of an op table: flaws that make all its numbers unusable."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_ttnn_perf.analysis.ops.regions import once_per_table, regions_of
from pytest_ttnn_perf.core.ops import short_code
from pytest_ttnn_perf.core.text import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_ttnn_perf.analysis.ops.regions import Step
    from pytest_ttnn_perf.core.ops import OpTable


#: Why ops have no time, with the article that a sentence wants.
_FLAWS: Final = {
    "negative kernel duration": "a negative kernel duration",
    "kernel duration of 0": "a kernel duration of 0",
    "impossible gap": "an impossible gap",
}
#: Fewer ops, or ops of one kind only, may well take the same time.
_FEWEST_OPS: Final = 8
_FEWEST_KINDS: Final = 2
#: Of real captures, the most common duration is that of one op in a hundred, mostly.
MOST_ALIKE: Final = 0.9
_MOST_KINDS: Final = 0.5


def why_invalid(table: OpTable, file: str | None = None) -> str | None:
    """Say why a capture cannot be trusted; None if it can.

    ``file`` is its name, if it is to be said. An invalid capture gives no metric, is no baseline,
    and is compared with nothing. What makes one kind of conclusion doubtful is not meant here:
    rules warn of that.
    """
    if table.unread:
        of_file = f" of {file}" if file else ""
        return f"{unread_ops(table)}, first in line {first_unread(table)}{of_file}"
    for flaw in (different_replays(table), alike_durations(table), no_processor(table)):
        if flaw is not None:
            return f"{file}: {flaw}" if file else flaw
    return None


def unread_ops(table: OpTable) -> str:
    """Say how many ops have no usable time."""
    reasons = Counter(each.reason for each in table.unread)
    flaws = [
        f"{_FLAWS.get(why, why)} ({n})" if len(reasons) > 1 else _FLAWS.get(why, why)
        for why, n in reasons.items()
    ]
    several, ops = len(table.unread), len(table.unread) + table.columns.host.count(False)
    share = f"{several} of {counted(ops, 'device op')} {'has' if several == 1 else 'have'}"
    return f"{share} {' or '.join(flaws)}"


def first_unread(table: OpTable) -> int:
    """Return the line of the first op without a time."""
    return min(each.line for each in table.unread)


def different_replays(table: OpTable) -> str | None:
    """Say which replays of one trace ran different ops."""
    broken = next((trace for trace in table.traces if not trace.complete), None)
    if broken is None:
        return None
    return f"the replays of trace {broken.trace} on device {broken.device} ran different ops"


class Alike(NamedTuple):
    """The most common duration, and how many ``ops`` have it.

    ``kinds`` is the part of the kinds of ops that have it.
    """

    duration_ns: float
    having_it: int
    ops: int
    kinds: float

    @property
    def share(self) -> float:
        """The part of the ops that has it."""
        return self.having_it / self.ops

    @property
    def is_made_up(self) -> bool:
        """True if nearly all ops of several kinds have it."""
        return self.share >= MOST_ALIKE and self.kinds > _MOST_KINDS


@once_per_table
def most_common_duration(table: OpTable) -> Alike | None:
    """Return the most common duration; None for too few ops."""
    columns = table.columns
    rows = zip(columns.signature, columns.kernel_ns, columns.host, strict=True)
    ran = [(kind, kernel_ns) for kind, kernel_ns, host in rows if not host]
    if len(ran) < _FEWEST_OPS or len({kind for kind, _ in ran}) < _FEWEST_KINDS:
        return None
    ((duration_ns, count),) = Counter(kernel_ns for _, kernel_ns in ran).most_common(1)
    all_kinds = {kind for kind, _ in ran}
    kinds = {kind for kind, kernel_ns in ran if kernel_ns == duration_ns}
    return Alike(duration_ns, count, len(ran), len(kinds) / len(all_kinds))


def alike_durations(table: OpTable) -> str | None:
    """Say that ops of different kinds took the same time."""
    alike = most_common_duration(table)
    if alike is None or not alike.is_made_up:
        return None
    return (
        f"{alike.having_it} of {alike.ops} ops took exactly {alike.duration_ns:g} ns: not measured"
    )


def no_processor(table: OpTable) -> str | None:
    """Say that kernels have times, and no processor does.

    A profiler that was asked for the kernel duration alone leaves out the firmware's, too.
    """
    has_firmware_times = any(fw_ns is not None for fw_ns in table.columns.fw_ns)
    if table.processors is not False or not has_firmware_times:
        return None
    return "no processor ran a kernel, though ops have kernel durations"


class DeviceDifference(NamedTuple):
    """A device that ran other ops than most; op lists in words."""

    where: str
    device: int
    found: str
    usual: str


def device_differences(table: OpTable) -> Sequence[DeviceDifference]:
    """Return the devices that ran other ops than most.

    Looked at is the first step of each region. A device that ran nothing there takes no part.
    """
    return tuple(
        odd
        for region in regions_of(table).regions
        for odd in _odd_devices(table, region.name or region.basis.value, region.steps[0])
    )


def _odd_devices(table: OpTable, where: str, step: Step) -> Iterator[DeviceDifference]:
    codes = [signature.op for signature in table.signatures]
    sequences = {
        device: tuple([codes[table.columns.signature[at]] for at in places])
        for device, places in step.items()
    }
    ((usual, _),) = Counter(sequences.values()).most_common(1)
    for device, sequence in sorted(sequences.items()):
        if sequence != usual:
            pairs = zip(sequence, usual, strict=False)
            at = next((at for at, (mine, other) in enumerate(pairs) if mine != other), None)
            if len(sequence) != len(usual) or at is None:
                found, expected = counted(len(sequence), "op"), counted(len(usual), "op")
            else:
                found, expected = (
                    f"{short_code(each[at])} at op {at + 1}" for each in (sequence, usual)
                )
            yield DeviceDifference(where, device, found, expected)
