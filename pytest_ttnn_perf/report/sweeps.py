"""A sweep in words: its points, the best of them, where growing ends, and a plot of the frontier.

Drawn in ASCII, so that it looks the same in any log.
"""

from __future__ import annotations

from math import log
from string import ascii_lowercase
from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_ttnn_perf._base.text import counted, digits
from pytest_ttnn_perf.records.metric import Kind
from pytest_ttnn_perf.records.sweep import PointState, Role
from pytest_ttnn_perf.report.layout import Fit, Line, table_of
from pytest_ttnn_perf.report.numbers import format_fraction, format_value

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pytest_ttnn_perf.records.hardware import Scalar
    from pytest_ttnn_perf.records.sweep import Plateau, PointResult, Sweep
    from pytest_ttnn_perf.report.layout import Table

#: So many points are listed; all are in the record.
_MOST: Final = 40
#: How many points are named where they are a list of their own.
_MOST_NAMED: Final = 6


def sweeps_lines(sweeps: Iterable[Sweep]) -> Iterator[Line | Table]:
    """Lay out sweeps, one after another."""
    for sweep in sweeps:
        yield from sweep_lines(sweep)


def sweep_lines(sweep: Sweep) -> Iterator[Line | Table]:
    """Lay out a sweep for a terminal."""
    yield Line(heading(sweep))
    headings, rows = sweep_table(sweep)
    values = range(1 + len(sweep.axes), len(headings) - 1)
    numeric = (1 + place for place, axis in enumerate(sweep.axes) if _all_numbers(axis.values))
    fits = [Fit() for _ in headings[:-1]]
    yield table_of(
        headings,
        rows[:_MOST],
        right=frozenset({*numeric, *values}),
        fits=(*fits, Fit(least=13)),
    )
    if len(rows) > _MOST:
        yield Line(f"... and {len(rows) - _MOST} more points; the run record has them")
    yield from (Line(f"  {text}") for text in sweep_sentences(sweep))
    yield from (Line(text, drawn=True) for text in plot_lines(sweep))
    yield Line("")


def heading(sweep: Sweep) -> str:
    """Say what was swept, and how many points came to what."""
    axes = ", ".join(axis.axis for axis in sweep.axes)
    ended = [
        f"{count} {state.value}"
        for state in (PointState.OUT_OF_MEMORY, PointState.FAILED)
        if (count := sum(point.state is state for point in sweep.points))
    ]
    text = f"sweep {sweep.test} over {axes}: {counted(len(sweep.points), 'point')}"
    return "; ".join([text, *ended])


def sweep_table(sweep: Sweep) -> tuple[list[str], list[list[str]]]:
    """Return headings and rows: a letter, the axes, what was measured, and what it amounts to."""
    labels = labels_of(sweep)
    headings = ["", *(axis.axis for axis in sweep.axes)]
    columns = [(each.role, each.metric) for each in sweep.metrics]
    headings += [
        metric.unit if metric.kind is Kind.THROUGHPUT and metric.unit else metric.name
        for _, metric in columns
    ]
    largest = {
        role: max((abs(v) for p in sweep.points if (v := p.value(role)) is not None), default=None)
        for role, _ in columns
    }
    rows = []
    for point in sweep.points:
        row = [labels[point.test], *(str(point.axes[axis.axis]) for axis in sweep.axes)]
        for role, metric in columns:
            value = point.value(role)
            if value is not None and metric.kind is Kind.THROUGHPUT:
                row.append(digits(value))
            else:
                row.append(format_value(metric, value, beside=largest[role]))
        rows.append([*row, _state(sweep, point)])
    return [*headings, "point"], rows


def _state(sweep: Sweep, point: PointResult) -> str:
    if point.state is not PointState.MEASURED:
        return str(point.state.value)
    said = ["best"] if point.test in sweep.best else []
    said += ["frontier"] if point.test in sweep.frontier else []
    return ", ".join([*said, *point.unmet])


def labels_of(sweep: Sweep) -> Mapping[str, str]:
    """Return a letter for each point, a capital for those on the frontier.

    Where there are more points than letters, those of the frontier get one, and others a dot.
    """
    few = len(sweep.points) <= len(ascii_lowercase)
    lettered = [p.test for p in sweep.points if few or p.test in sweep.frontier]
    letters = dict(zip(lettered, ascii_lowercase, strict=False))
    return {
        point.test: letters.get(point.test, ".").upper()
        if point.test in sweep.frontier
        else letters.get(point.test, ".")
        for point in sweep.points
    }


def sweep_sentences(sweep: Sweep) -> Iterator[str]:
    """Say which point is best, where growing ends, and whether the axes took effect."""
    if len(sweep.points) < 2:
        return  # of one point, nothing
    yield from _best(sweep)
    yield from map(_plateau, sweep.plateaus)
    effective = [f"{axis.axis} ({_some(axis.changed)})" for axis in sweep.axes if axis.changed]
    if effective:
        yield f"took effect, by what changed with it alone: {', '.join(effective)}"
    for axis in sweep.axes:
        if not axis.compared and len(axis.values) > 1:
            yield (
                f"axis {axis.axis}: cannot tell whether it took effect: no two points that differ "
                "in it alone were measured"
            )
    for axis in sweep.without_effect:
        yield f"axis {axis.axis}: changed nothing that was observed (TTP013)"


def _some(names: Sequence[str]) -> str:
    more = len(names) - 2
    return ", ".join(names[:2]) + (f" and {more} more" if more > 0 else "")


def _best(sweep: Sweep) -> Iterator[str]:
    if sweep.best_by is None:
        yield "best: cannot tell: no point has a throughput or a time"
        return
    required = ", ".join(f"{name} {bound}" for name, bound in sweep.require.items())
    if not sweep.best:
        yield f"best: none: no point meets what is required{f' ({required})' if required else ''}"
        return
    metric = sweep.metric(sweep.best_by)
    assert metric is not None
    points = {point.test: point for point in sweep.points}
    best = [points[test] for test in sweep.best[:_MOST_NAMED]]
    named = [
        f"{axes_text(point.axes)} ({format_value(metric, point.value(sweep.best_by))})"
        for point in best
    ]
    more = len(sweep.best) - _MOST_NAMED
    named += [f"and {more} more"] if more > 0 else []
    of = f" of those that meet {required}" if required else ""
    if len(sweep.best) == 1:
        yield f"best {sweep.best_by.value}{of}: {named[0]}"
    else:
        yield f"best {sweep.best_by.value}{of}, within noise of each other: {'; '.join(named)}"


def _plateau(plateau: Plateau) -> str:
    where = f" ({axes_text(plateau.fixed)})" if plateau.fixed else ""
    full = f"; {plateau.no_room} is out of memory" if plateau.no_room is not None else ""
    start = f"plateau along {plateau.axis}{where}"
    if plateau.at is None:
        return f"{start}: not reached, still growing at {plateau.last}{full}"
    gain = plateau.gain or 0.0
    if gain < 0:
        least = format_fraction(-gain)
        return (
            f"{start}: {plateau.at} is the most; up to {plateau.last} loses {least} at least{full}"
        )
    added = format_fraction(gain)
    return f"{start}: {plateau.at}; up to {plateau.last} adds {added}, which is within noise{full}"


def axes_text(axes: Mapping[str, Scalar]) -> str:
    """Return a point by its values.

    >>> axes_text({"batch": 8, "weights": "bf16"})
    'batch=8 weights=bf16'
    """
    return " ".join(f"{axis}={value}" for axis, value in axes.items())


def _all_numbers(values: Sequence[Scalar]) -> bool:
    return all(isinstance(value, (int, float)) for value in values)


#: The size of a plot, without what stands beside and below it: lower where values are few.
_COLUMNS: Final = 56
_ROWS: Final = range(5, 12)
#: Values further apart than this are drawn by their logarithms.
_WIDE: Final = 10.0


class _Scale(NamedTuple):
    """Where a value lies between the smallest and the largest."""

    low: float
    high: float
    logarithmic: bool

    @classmethod
    def of(cls, values: Sequence[float]) -> _Scale:
        low, high = min(values), max(values)
        return cls(low, high, low > 0 and high / low > _WIDE)

    def place(self, value: float, steps: int) -> int:
        low, high = self.low, self.high
        if self.logarithmic:
            low, high, value = log(low), log(high), log(value)
        return round((value - low) / (high - low) * (steps - 1)) if high > low else 0


def plot_lines(sweep: Sweep) -> Iterator[str]:
    """Draw the points by the two figures that their frontier weighs; nothing below three."""
    if len(sweep.frontier_of) != 2:
        return
    across, up = sweep.frontier_of
    placed = [
        (x, y, point.test)
        for point in sweep.points
        if (x := point.value(across)) is not None and (y := point.value(up)) is not None
    ]
    if len(placed) < 3:
        return
    labels = labels_of(sweep)
    xs, ys = _Scale.of([x for x, _, _ in placed]), _Scale.of([y for _, y, _ in placed])
    rows = min(max(2 * len({y for _, y, _ in placed}), _ROWS[0]), _ROWS[-1])
    cells = [[" "] * _COLUMNS for _ in range(rows)]
    # Where two fall into one place, the one on the frontier is seen.
    for x, y, test in sorted(placed, key=lambda each: each[2] in sweep.frontier):
        cells[rows - 1 - ys.place(y, rows)][xs.place(x, _COLUMNS)] = labels[test]
    yield ""
    yield from _framed(sweep, cells, (across, xs), (up, ys))


def _framed(
    sweep: Sweep,
    cells: Sequence[Sequence[str]],
    across: tuple[Role, _Scale],
    up: tuple[Role, _Scale],
) -> Iterator[str]:
    low, high = _ends(sweep, *up)
    width = max(len(low), len(high))
    yield f"  {'':>{width}}   {_title(sweep, *up)}; capitals: frontier"
    for number, row in enumerate(cells):
        end = high if number == 0 else low if number == len(cells) - 1 else ""
        yield f"  {end:>{width}} | {''.join(row)}".rstrip()
    yield f"  {'':>{width}} +-{'-' * _COLUMNS}"
    left, right = _ends(sweep, *across)
    title = _title(sweep, *across)
    yield f"  {'':>{width}}   {left}{title:^{_COLUMNS - len(left) - len(right)}}{right}"


def _ends(sweep: Sweep, role: Role, scale: _Scale) -> tuple[str, str]:
    metric = sweep.metric(role)
    if metric is None or metric.kind is Kind.THROUGHPUT:
        return digits(scale.low), digits(scale.high)
    return (
        format_value(metric, scale.low, beside=scale.high),
        format_value(metric, scale.high),
    )


def _title(sweep: Sweep, role: Role, scale: _Scale) -> str:
    metric = sweep.metric(role)
    shown = (
        f"{metric.unit}" if metric and metric.kind is Kind.THROUGHPUT else metric and metric.name
    )
    return f"{role.value} ({shown}{', logarithmic' if scale.logarithmic else ''})"
