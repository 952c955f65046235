"""A sweep in words: a table of its points, and the best of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.text import counted, digits
from pytest_ttnn_perf.records.metric import Kind
from pytest_ttnn_perf.records.sweep import PointState
from pytest_ttnn_perf.report.layout import Fit, Line, table_of
from pytest_ttnn_perf.report.numbers import format_value

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_ttnn_perf.records.sweep import Sweep
    from pytest_ttnn_perf.report.layout import Table

#: So many points are listed; all are in the record.
_MOST: Final = 40
#: How many points are named where they are a list of their own.
_MOST_NAMED: Final = 6


def sweep_lines(sweep: Sweep) -> Iterator[Line | Table]:
    """Lay out a sweep for a terminal."""
    yield Line(heading(sweep))
    headings, rows = sweep_table(sweep)
    values = range(len(sweep.axes), len(headings) - 1)
    numeric = (
        place
        for place, axis in enumerate(sweep.axes)
        if all(isinstance(value, (int, float)) for value in axis.values)
    )
    fits = [*(Fit() for _ in headings[:-1]), Fit(least=13)]
    yield table_of(headings, rows[:_MOST], right=frozenset({*numeric, *values}), fits=fits)
    if len(rows) > _MOST:
        yield Line(f"... and {len(rows) - _MOST} more points; the run record has them")
    yield from (Line(f"  {text}") for text in sweep_sentences(sweep))
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
    """Return headings and rows: the axes, what was measured, and what it amounts to."""
    headings = [axis.axis for axis in sweep.axes]
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
        row = [str(point.axes[axis.axis]) for axis in sweep.axes]
        for role, metric in columns:
            value = point.value(role)
            if value is not None and metric.kind is Kind.THROUGHPUT:
                row.append(digits(value))
            else:
                row.append(format_value(metric, value, beside=largest[role]))
        said = [*(["best"] if point.test in sweep.best else []), *point.unmet]
        measured = point.state is PointState.MEASURED
        rows.append([*row, ", ".join(said) if measured else point.state.value])
    return [*headings, "point"], rows


def sweep_sentences(sweep: Sweep) -> Iterator[str]:
    """Say which point is best, and which axes changed nothing."""
    if len(sweep.points) < 2:
        return  # of one point, nothing
    yield from _best(sweep)
    for axis in sweep.axes:
        if axis.compared and not axis.took_effect:
            yield f"axis {axis.axis}: changed nothing that was observed (TTP013)"


def _best(sweep: Sweep) -> Iterator[str]:
    if sweep.best_by is None:
        yield "best: cannot tell: no point has a throughput or a time"
        return
    required = ", ".join(f"{name} {bound}" for name, bound in sweep.require.items())
    if not sweep.best:
        yield f"best: none: no point meets what is required{f' ({required})' if required else ''}"
        return
    metric = next(each.metric for each in sweep.metrics if each.role is sweep.best_by)
    points = {point.test: point for point in sweep.points}
    best = [points[test] for test in sweep.best[:_MOST_NAMED]]
    named = []
    for point in best:
        axes = " ".join(f"{axis}={value}" for axis, value in point.axes.items())
        named.append(f"{axes} ({format_value(metric, point.value(sweep.best_by))})")
    more = len(sweep.best) - _MOST_NAMED
    named += [f"and {more} more"] if more > 0 else []
    of = f" of those that meet {required}" if required else ""
    alike = ", within noise of each other" if len(sweep.best) > 1 else ""
    yield f"best {sweep.best_by.value}{of}{alike}: {'; '.join(named)}"
