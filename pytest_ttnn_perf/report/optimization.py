"""How far the optimization of a model has come, laid out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._support.visible import shortened, visible
from pytest_ttnn_perf._support.wording import counted
from pytest_ttnn_perf.model.progress import State
from pytest_ttnn_perf.report.lines import Line
from pytest_ttnn_perf.report.tables import table_lines

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_ttnn_perf.model.progress import Progress, Step

#: States in a table; a dash is what is not known, also as "done (2 -)": but for two rules.
_SHORT: Final = {
    State.DONE: "done",
    State.OPEN: "OPEN",
    State.NOT_MEASURED: "-",
    State.NOT_APPLICABLE: "n/a",
}
_LONGEST_ID: Final = 160
PROGRESS_TITLES: Final = (
    *("test", "baseline", "1 formats", "2 layouts", "3 memory", "4 trace", "5 queues", "6 convs"),
    *("7 devices", "PCC"),
)


def progress_lines(progress: Sequence[tuple[str, Progress]]) -> Iterator[Line]:
    """Lay out how far each model of a run has come, and which step to take first."""
    if not progress:
        return
    yield Line("optimization progress")
    rows = [
        (shortened(visible(test), _LONGEST_ID), *progress_cells(each)) for test, each in progress
    ]
    yield from map(Line, table_lines(PROGRESS_TITLES, rows))
    for test, each in progress:
        yield from (Line(f"{test}: {line}") for line in first_step(each))
    yield Line("")


def progress_cells(progress: Progress) -> tuple[str, ...]:
    """Return how far one model has come, as the cells of a row."""
    return tuple(map(_short, progress.all))


def progress_block(progress: Progress) -> Iterator[str]:
    """Lay out how far one model has come, a step in a line."""
    yield "optimization progress:"
    for step in progress.all:
        yield f"  {step.name:<20} {_state(step)}"
    yield from first_step(progress)


def progress_document(progress: Progress) -> dict[str, object]:
    """Return it as plain JSON."""
    return {
        "steps": [
            {
                "name": step.name,
                "state": step.state.value,
                "open_rules": list(step.open_rules),
                "unmeasured": step.unmeasured,
            }
            for step in progress.all
        ],
        "model_kind": progress.kind.value if progress.kind else None,
        "first": progress.steps[progress.first - 1].name if progress.first else None,
        "invalid": list(progress.invalid),
    }


def _short(step: Step) -> str:
    return _SHORT[step.state] + (f" ({step.unmeasured} -)" if step.unmeasured else "")


def _state(step: Step) -> str:
    if step.unmeasured:
        return (
            f"{step.state.value}, as far as known: {counted(step.unmeasured, 'rule')} not measured"
        )
    return ": ".join(filter(None, (step.state.value, ", ".join(step.open_rules))))


def first_step(progress: Progress) -> Iterator[str]:
    """Say which step to take first, and for which kind of model that is the one."""
    if progress.invalid:
        yield f"first: validity, {', '.join(progress.invalid)}: the numbers cannot be trusted"
        return
    if progress.first is None:
        return
    step = progress.steps[progress.first - 1]
    kind = f" ({progress.kind.value})" if progress.kind else ""
    yield f"first{kind}: {step.name}, {', '.join(step.open_rules)}"
