"""Two captures side by side: which ops make up the change."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ttnn_perf._support.errors import InputError, UsageError
from pytest_ttnn_perf.attribution.align import attribute
from pytest_ttnn_perf.report.attribution import attribution_listing
from pytest_ttnn_perf.workflow.op_tables import op_table_of

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_ttnn_perf.model.ops import OpTable


def compare_captures(
    before: Path, after: Path, *, start: str | None, end: str | None, shape: str
) -> str:
    """Say which ops make up the change between two captures, within a window if one is named.

    Raises:
        InputError: a file is no such capture, or is damaged.
        UsageError: the captures cannot be compared, or lack the window.
    """
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
