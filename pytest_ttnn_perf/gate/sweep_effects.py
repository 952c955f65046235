"""Whether an axis of a sweep took effect: what differs where nothing else was changed."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

from pytest_ttnn_perf.records.metric import Kind
from pytest_ttnn_perf.records.sweep import AxisEffect

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pytest_ttnn_perf.records.hardware import Scalar
    from pytest_ttnn_perf.records.observation import JudgedTest, Observation
    from pytest_ttnn_perf.records.ops import OpGroups

    #: Tells whether a metric of some name differs between two points.
    Differ = Callable[[JudgedTest, JudgedTest, str], bool]


def effects_of(tests: Sequence[JudgedTest], differ: Differ) -> Iterator[AxisEffect]:
    """Yield for each axis what differs between points that differ in it alone.

    ``differ`` tells whether a metric does so by more than noise. A throughput proves nothing: it
    may have been reckoned from the axis. Neither does a fact that only repeats the axis.
    """
    points = [each for each in tests if not (each.observation.raised or each.observation.lost)]
    for axis in _axes(tests[0]):
        values: dict[Scalar, None] = dict.fromkeys(_axes(each)[axis] for each in tests)
        alike: dict[tuple[Scalar, ...], list[JudgedTest]] = {}
        for each in points:
            others = tuple(value for name, value in _axes(each).items() if name != axis)
            alike.setdefault(others, []).append(each)
        pairs = [pair for line in alike.values() for pair in combinations(line, 2)]
        changed: dict[str, None] = {}
        for one, other in pairs:
            changed.update(dict.fromkeys(_differences(one, other, axis, differ)))
        yield AxisEffect(axis, tuple(values), len(pairs), tuple(changed))


def _axes(judged: JudgedTest) -> Mapping[str, Scalar]:
    return judged.observation.sweep.axes if judged.observation.sweep else {}


def _differences(first: JudgedTest, second: JudgedTest, axis: str, differ: Differ) -> Iterator[str]:
    one, other = first.observation, second.observation
    if (one.out_of_memory is None) != (other.out_of_memory is None):
        yield "whether it fits"
    if one.out_of_memory is not None or other.out_of_memory is not None:
        return
    difference = one.configuration.first_difference(other.configuration)
    if difference is not None:
        yield difference[0]
    yield from _other_facts(one, other, axis)
    if _ops(one.ops) != _ops(other.ops):
        yield "op table"
    for name, observed in one.metrics.items():
        beside = other.metrics.get(name)
        if beside is None or observed.metric.kind is Kind.THROUGHPUT:
            continue
        if observed.metric.kind is Kind.TIME and not observed.gated:
            continue  # a first call takes what it takes
        if differ(first, second, name):
            yield name


def _other_facts(one: Observation, other: Observation, axis: str) -> Iterator[str]:
    for name, fact in one.facts.items():
        told = [
            (each.facts.get(name), each.sweep.axes[axis]) for each in (one, other) if each.sweep
        ]
        repeats = all(stated == value for stated, value in told)
        if fact != other.facts.get(name) and not repeats:
            yield f"fact {name}"


def _ops(table: OpGroups | None) -> list[tuple[object, ...]] | None:
    """Return what ran, without its times."""
    if table is None:
        return None
    return [
        (each.region, each.signature, each.cores, each.fidelity, each.settings, each.count)
        for each in table.groups
    ]
