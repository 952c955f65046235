"""Two files side by side: the metrics of two runs, or the ops of two captures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ttnn_perf._support.errors import InputError, UsageError
from pytest_ttnn_perf.attribution.align import attribute
from pytest_ttnn_perf.capture.detect import ArtifactKind
from pytest_ttnn_perf.capture.run_record import read_run
from pytest_ttnn_perf.report.attribution import attribution_listing
from pytest_ttnn_perf.report.comparison import comparison_listing
from pytest_ttnn_perf.workflow.compare_runs import compare_runs
from pytest_ttnn_perf.workflow.op_tables import op_table_of
from pytest_ttnn_perf.workflow.show import presumed_kind_of

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_ttnn_perf.model.ops import OpTable


def compare_files(
    before: Path, after: Path, *, start: str | None, end: str | None, shape: str
) -> str:
    """Say what changed between two run records, or between two captures with op tables.

    Of captures, the window between two signposts is compared if they are named.

    Raises:
        InputError: a file is neither, or is damaged.
        UsageError: the files cannot be compared, or lack the window.
    """
    kinds = [presumed_kind_of(file) for file in (before, after)]
    if ArtifactKind.RUN_RECORD not in kinds:
        return _compare_captures(before, after, start=start, end=end, shape=shape)
    if kinds[0] is not kinds[1]:
        found = f"{before.name} is {kinds[0].value}, {after.name} is {kinds[1].value}"
        message = f"a run record is compared with another one: {found}"
        raise UsageError(message)
    if start or end:
        message = (
            f"--start and --end select ops of an op table; {before.name} and {after.name} are "
            "run records"
        )
        raise UsageError(message)
    comparison = compare_runs(read_run(before), read_run(after))
    return comparison_listing(comparison, names=(before.name, after.name)).text(shape)


def _compare_captures(
    before: Path, after: Path, *, start: str | None, end: str | None, shape: str
) -> str:
    first, second = (op_table_of(file, start=start, end=end) for file in (before, after))
    if first.kernel_time != second.kernel_time:
        message = (
            f"the captures hold different times: {before.name} has {first.kernel_time}, "
            f"{after.name} has {second.kernel_time}"
        )
        raise UsageError(message)
    _refuse_incomplete(before, first)
    _refuse_incomplete(after, second)
    return attribution_listing(attribute(first, second)).text(shape)


def _refuse_incomplete(file: Path, table: OpTable) -> None:
    """Replays that ran different ops lost data, and no op of theirs can be trusted."""
    for trace in table.traces:
        if not trace.complete:
            problem = (
                f"trace {trace.trace} on device {trace.device} is incomplete: its "
                f"{trace.replays} replays ran different ops; capture it again"
            )
            raise InputError(file, problem)
