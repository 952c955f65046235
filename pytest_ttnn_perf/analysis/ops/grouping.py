"""Groups of like ops, as baselines store them, and the change between two such tables."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from dataclasses import replace
from itertools import chain, pairwise, repeat
from statistics import median
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf.analysis.ops.align import GROUPED, attribute
from pytest_ttnn_perf.analysis.ops.lanes import Lane, lanes_of
from pytest_ttnn_perf.analysis.ops.settings import condense_settings
from pytest_ttnn_perf.records.ops import Columns, OpGroup, OpGroups, OpTable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pytest_ttnn_perf.records.attribution import Attribution
    from pytest_ttnn_perf.records.ops import Signature

    Likeness = tuple[Signature, int | None, str | None, str]


#: Ops of one name are of different kinds where one takes less than this part of the next longer.
_APART: Final = 0.8
#: How much of a stored time its digits leave open.
_ROUNDING: Final = 1e-6
#: Means over devices are kept to the picosecond.
_DECIMALS: Final = 3


def group_ops(table: OpTable, chosen: Sequence[Lane] | None = None) -> OpGroups:
    """Gather the ops of a table that have the same signature and are set up alike.

    If lanes of devices are ``chosen``, only their ops, and the mean of what they take. What fell
    back to the host is beside them, unless they are of a trace, which has no such ops.
    """
    on_devices, on_host = lanes_of(table)
    if chosen is not None:
        on_devices, on_host = _folded(table, chosen), Lane() if table.traces else on_host
    lanes = (*on_devices, on_host)
    groups: dict[Likeness, list[list[float]]] = defaultdict(lambda: [[] for _ in lanes])
    for place, lane in enumerate(lanes):
        for likeness, kernel_ns in zip(_likenesses(table, lane), lane.kernel_ns, strict=True):
            groups[likeness][place].append(kernel_ns)
    found = [
        OpGroup(
            *likeness,
            count=max(map(len, times)),
            total_ns=round(sum(chain.from_iterable(times)) / len(on_devices), _DECIMALS),
            median_ns=round(median(chain.from_iterable(times)), _DECIMALS),
        )
        for likeness, of_lanes in groups.items()
        for times in (
            [of_lanes] if likeness[0].inputs or likeness[0].outputs else _by_time(of_lanes)
        )
    ]
    return OpGroups(table.kernel_time, tuple(sorted(found, key=_place)))


def _folded(table: OpTable, lanes: Sequence[Lane]) -> tuple[Lane, ...]:
    """Return one lane of mean times for lanes that run one program, op by op.

    A collective has fewer cores at the end of a line than in its middle, and shapes may differ from
    device to device: told apart, that would be twice as many ops that take half the time each.
    """
    codes = [table.signatures[number].op for number in table.columns.signature]
    if len({tuple(codes[row] for row in lane.rows) for lane in lanes}) != 1:
        return tuple(lanes)
    places = zip(*(lane.kernel_ns for lane in lanes), strict=True)
    return (Lane(lanes[0].rows, [sum(place) / len(lanes) for place in places]),)


def attribute_groups(before: OpGroups, after: OpGroups) -> Attribution | None:
    """Attribute the change between two tables of which only the groups are known.

    The order of the ops is not: what moved cannot be told, and an op has the mean time of its
    group. Times of different columns are different quantities: there is nothing to say of them.
    """
    if before.kernel_time != after.kernel_time:
        return None
    return attribute(_expand_groups(before), _expand_groups(after))


def attribute_regions(
    before: OpGroups, after: OpGroups, times_ns: Mapping[str, tuple[float, float]]
) -> Iterator[tuple[str, Attribution | None]]:
    """Yield the change of each region that both tables have, by op; None for what has no answer.

    The tables are of one session each, and ``times_ns``, then and now, may be of several: what
    these differ by besides is left to the other ops.
    """
    for region, (then, now) in times_ns.items():
        if region not in before.regions or region not in after.regions:
            continue
        attribution = attribute_groups(before.of(region), after.of(region))
        if attribution is not None and abs(now - then - attribution.delta_ns) > _ROUNDING * then:
            told = sum(part.delta_ns for part in attribution.parts)
            attribution = replace(
                attribution, before_ns=then, after_ns=now, unexplained_ns=(now - then) - told
            )
        yield region, attribution


def _likenesses(table: OpTable, lane: Lane) -> Iterable[Likeness]:
    c = table.columns
    for row in lane.rows:
        fidelity, attributes = c.fidelity[row], c.attributes[row]
        yield (
            table.signatures[c.signature[row]],
            c.cores[row],
            None if fidelity < 0 else table.fidelities[fidelity],
            "" if attributes < 0 else condense_settings(table.attribute_texts[attributes]),
        )


def _by_time(of_lanes: list[list[float]]) -> Iterable[list[list[float]]]:
    """Tell ops apart that have only a name, by how long they take: a large matmul from a small."""
    ordered = sorted(chain.from_iterable(of_lanes), reverse=True)
    steps = [now for then, now in pairwise(ordered) if now < _APART * then]
    bounds = [math.inf, *(math.nextafter(step, math.inf) for step in steps), -math.inf]
    for above, below in pairwise(bounds):
        yield [[ns for ns in times if below <= ns < above] for times in of_lanes]


def _place(group: OpGroup) -> tuple[object, ...]:
    """Order by what the op is; of what cannot be told apart by that, the longest first."""
    signature = group.signature
    shapes = [tensor.padded for tensor in (*signature.inputs, *signature.outputs)]
    setup = (group.settings, str(group.cores), str(group.fidelity))
    return signature.op, shapes, repr(signature), -group.median_ns, setup


def _expand_groups(ops: OpGroups) -> OpTable:
    """Return a table with each op of the groups, on one device."""
    groups = ops.groups
    rows = [place for place, group in enumerate(groups) for _ in range(group.count)]
    fidelities = list(Counter(group.fidelity for group in groups if group.fidelity is not None))
    numbers = {fidelity: number for number, fidelity in enumerate(fidelities)}
    unknown = list(repeat(None, len(rows)))
    return OpTable(
        format=GROUPED,
        rows=len(rows),
        columns=Columns(
            signature=rows,
            device=[0] * len(rows),
            kernel_ns=[groups[row].total_ns / groups[row].count for row in rows],
            fw_ns=unknown,
            gap_ns=unknown,
            ideal_ns=unknown,
            cores=[groups[row].cores for row in rows],
            fidelity=[numbers.get(groups[row].fidelity or "", -1) for row in rows],
            attributes=rows,
            trace=unknown,
            replay=unknown,
            start_cycle=unknown,
            host=[False] * len(rows),
        ),
        signatures=[group.signature for group in groups],
        fidelities=fidelities,
        attribute_texts=[group.settings for group in groups],
        kernel_time=ops.kernel_time,
    )
