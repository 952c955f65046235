"""The change between two op tables, attributed to ops."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import chain
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf.attribution.catalogue import Catalogue
from pytest_ttnn_perf.attribution.fates import Fates
from pytest_ttnn_perf.attribution.group import Group, changed_groups
from pytest_ttnn_perf.attribution.lanes import Lane, device_lanes, host_lane
from pytest_ttnn_perf.attribution.pairing import Pairing, Strand, paired
from pytest_ttnn_perf.attribution.words import calling_shape, operands_text
from pytest_ttnn_perf.model.attribution import Attribution, Part

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pytest_ttnn_perf.model.ops import OpTable

#: Times are counted in units of 2⁻¹⁰ ns, finer than any capture tells them ...
_FINEST: Final = -10
#: ... or in coarser ones, if the sum of all would need more bits than a float adds up exactly.
_EXACT_BITS: Final = 52


def attribute(before: OpTable, after: OpTable) -> Attribution:
    """Attribute the change of the kernel time from one capture to another; times are finite.

    The totals are of one device. Several devices are compared each with its counterpart, by
    ascending number, and then averaged; the parts are means as well. Of a trace, one replay is
    compared with one: each of its ops takes the median of the complete replays. What ran outside
    of traces is taken as it is. So a total is that of one replay per trace and all the rest. Ops
    that fell back to the host are compared, but take no kernel time.

    Parts and ``unexplained_ns`` add up to the change exactly, as floats and in any order. Swapping
    the tables negates all of them.
    """
    lanes = device_lanes(before), device_lanes(after)
    unit_ns = _unit_ns(chain(*lanes))
    catalogue = Catalogue()

    def strand(table: OpTable, lane: Lane) -> Strand:
        units = [round(kernel_ns / unit_ns) for kernel_ns in lane.kernel_ns]
        return Strand(catalogue.numbered(table, lane.rows), units)

    pairings, whole = paired(
        [strand(before, lane) for lane in lanes[0]], [strand(after, lane) for lane in lanes[1]]
    )
    hosts = strand(before, host_lane(before)), strand(after, host_lane(after))
    fates = Fates(catalogue)
    every = [*pairings, Pairing(*hosts, weight=whole)]
    groups = changed_groups(
        chain.from_iterable(
            fates.of(pairing, lane=lane, unit_ns=unit_ns) for lane, pairing in enumerate(every)
        ),
        unit_ns=unit_ns / whole,
    )

    def mean_ns(units: int) -> float:
        return round(Fraction(units, whole)) * unit_ns

    before_ns = mean_ns(sum(sum(pairing.before.units) for pairing in pairings))
    after_ns = mean_ns(sum(sum(pairing.after.units) for pairing in pairings))
    parts = sorted((_part(group, mean_ns) for group in groups), key=_rank)
    return Attribution(
        before_ns,
        after_ns,
        tuple(parts),
        (after_ns - before_ns) - sum(part.delta_ns for part in parts),
        devices=(len(lanes[0]), len(lanes[1])),
        replayed=_has_replays(before) or _has_replays(after),
    )


def _unit_ns(lanes: Iterable[Lane]) -> float:
    total = sum(sum(lane.kernel_ns) for lane in lanes)
    return 2.0 ** max(_FINEST, math.frexp(total)[1] - _EXACT_BITS)


def _has_replays(table: OpTable) -> bool:
    return any(replay is not None for replay in table.columns.replay)


def _part(group: Group, mean_ns: Callable[[int], float]) -> Part:
    signature = group.kind.signature
    return Part(
        group.change,
        signature.op,
        operands_text(signature),
        group.count,
        mean_ns(group.delta_units),
        group.kind.causes,
        max(group.moves.values()),
        calling_shape(signature),
        mean_ns(group.before_units),
    )


def _rank(part: Part) -> tuple[object, ...]:
    """Order by size; what is of the same size by its name, so that the order is always the same."""
    causes = [str(cause) for cause in part.causes]
    return -abs(part.delta_ns), part.change.value, part.op, part.signature, causes
