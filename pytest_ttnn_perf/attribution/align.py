"""The change between two op tables, attributed to ops."""

from __future__ import annotations

import math
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf.attribution.catalogue import Catalogue
from pytest_ttnn_perf.attribution.fates import Fates
from pytest_ttnn_perf.attribution.group import Group, changed_groups
from pytest_ttnn_perf.attribution.lanes import Lane, lanes_of
from pytest_ttnn_perf.attribution.pairing import Pairing, Strand, paired
from pytest_ttnn_perf.attribution.words import calling_shape, operands_text
from pytest_ttnn_perf.model.attribution import Attribution, Part

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pytest_ttnn_perf.model.ops import OpTable, Signature

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
    (our_lanes, our_host), (their_lanes, their_host) = lanes_of(before), lanes_of(after)
    unit_ns = _unit_ns([*our_lanes, *their_lanes])
    catalogue = Catalogue()

    def strands(table: OpTable, lanes: Iterable[Lane]) -> list[Strand]:
        variant_of = catalogue.numbered(table).__getitem__
        return [
            Strand(tuple(map(variant_of, lane.rows)), _units(lane.kernel_ns, unit_ns))
            for lane in lanes
        ]

    *ours, our_fallbacks = strands(before, [*our_lanes, our_host])
    *theirs, their_fallbacks = strands(after, [*their_lanes, their_host])
    pairings, whole = paired(ours, theirs)
    fates = Fates(catalogue)
    every = [*pairings, Pairing(our_fallbacks, their_fallbacks, whole)]
    groups = changed_groups(
        chain.from_iterable(
            fates.of(pairing, lane=lane, unit_ns=unit_ns) for lane, pairing in enumerate(every)
        ),
        unit_ns=unit_ns / whole,
    )

    def mean_ns(units: int) -> float:
        # To the nearest unit, halves to the even one: so the sign makes no difference.
        nearest, rest = divmod(units, whole)
        return (nearest + (2 * rest + nearest % 2 > whole)) * unit_ns

    before_ns = mean_ns(sum(sum(pairing.before.units) for pairing in pairings))
    after_ns = mean_ns(sum(sum(pairing.after.units) for pairing in pairings))
    parts = sorted(_parts(groups, mean_ns), key=_rank)
    return Attribution(
        before_ns,
        after_ns,
        tuple(parts),
        (after_ns - before_ns) - sum(part.delta_ns for part in parts),
        devices=(len(our_lanes), len(their_lanes)),
        replayed=_has_replays(before) or _has_replays(after),
    )


def _unit_ns(lanes: Iterable[Lane]) -> float:
    total = sum(sum(lane.kernel_ns) for lane in lanes)
    return 2.0 ** max(_FINEST, math.frexp(total)[1] - _EXACT_BITS)


def _units(times_ns: Iterable[float], unit_ns: float) -> list[int]:
    return [round(time_ns / unit_ns) for time_ns in times_ns]


def _has_replays(table: OpTable) -> bool:
    return bool(set(table.columns.replay) - {None})


def _parts(groups: Iterable[Group], mean_ns: Callable[[int], float]) -> Iterator[Part]:
    words_of = cache(_words)  # many parts may be of one op
    for group in groups:
        signature = group.kind.signature
        operands, shape = words_of(signature)
        yield Part(
            group.change,
            signature.op,
            operands,
            group.count,
            mean_ns(group.delta_units),
            group.kind.causes,
            max(group.moves.values()),
            shape,
            mean_ns(group.before_units),
        )


def _words(signature: Signature) -> tuple[str, str]:
    return operands_text(signature), calling_shape(signature)


def _rank(part: Part) -> tuple[object, ...]:
    """Order by size; what is of the same size by its name, so that the order is always the same."""
    causes = [str(cause) for cause in part.causes]
    return -abs(part.delta_ns), part.change.value, part.op, part.signature, causes
