"""A sweep in words: a table of points, and the best."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf.core.metric import Kind
from pytest_ttnn_perf.core.text import counted, digits
from pytest_ttnn_perf.gate.sweeps import PointState
from pytest_ttnn_perf.report.tables import Fit, Line, format_value, table_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_ttnn_perf.gate.sweeps import Sweep
    from pytest_ttnn_perf.report.tables import Table


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
    """Say what was swept, and how its points ended."""
    axes = ", ".join(axis.axis for axis in sweep.axes)
    ended = [
        f"{count} {state.value}"
        for state in (PointState.OUT_OF_MEMORY, PointState.FAILED)
        if (count := sum(point.state is state for point in sweep.points))
    ]
    text = f"sweep {sweep.test} over {axes}: {counted(len(sweep.points), 'point')}"
    return "; ".join([text, *ended])


def sweep_table(sweep: Sweep) -> tuple[list[str], list[list[str]]]:
    """Return the headings and rows of a sweep's points."""
    columns = [(each.role, each.metric) for each in sweep.metrics]
    by_unit = [m.unit if m.kind is Kind.THROUGHPUT and m.unit else m.name for _, m in columns]
    values = {role: [point.value(role) for point in sweep.points] for role, _ in columns}
    largest = {
        role: max((abs(value) for value in own if value is not None), default=None)
        for role, own in values.items()
    }
    rows = []
    for place, point in enumerate(sweep.points):
        row = [str(point.axes[axis.axis]) for axis in sweep.axes]
        for role, metric in columns:
            value = values[role][place]
            if value is not None and metric.kind is Kind.THROUGHPUT:
                row.append(digits(value))
            else:
                row.append(format_value(metric, value, beside=largest[role]))
        state = ", ".join([*(["best"] if point.test in sweep.best else []), *point.unmet])
        rows.append([*row, state if point.state is PointState.MEASURED else point.state.value])
    return [*(axis.axis for axis in sweep.axes), *by_unit, "point"], rows


def sweep_sentences(sweep: Sweep) -> Iterator[str]:
    """Name the best point, and the axes that changed nothing."""
    if len(sweep.points) < 2:
        return
    yield _best(sweep)
    for axis in sweep.axes:
        if axis.compared and not axis.took_effect:
            yield f"axis {axis.axis}: changed nothing that was observed (TTP013)"


def _best(sweep: Sweep) -> str:
    if sweep.best_by is None:
        return "best: cannot tell: no point has a throughput or a time"
    required = ", ".join(f"{name} {bound}" for name, bound in sweep.require.items())
    if not sweep.best:
        return f"best: none: no point meets what is required{f' ({required})' if required else ''}"
    metric = next(each.metric for each in sweep.metrics if each.role is sweep.best_by)
    points = {point.test: point for point in sweep.points}
    named = []
    for point in (points[test] for test in sweep.best[:_MOST_NAMED]):
        axes = " ".join(f"{axis}={value}" for axis, value in point.axes.items())
        named.append(f"{axes} ({format_value(metric, point.value(sweep.best_by))})")
    more = len(sweep.best) - _MOST_NAMED
    named += [f"and {more} more"] if more > 0 else []
    of = f" of those that meet {required}" if required else ""
    alike = ", within noise of each other" if len(sweep.best) > 1 else ""
    return f"best {sweep.best_by.value}{of}{alike}: {'; '.join(named)}"
