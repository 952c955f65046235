"""What tt-metal's helpers take of a report: ``post_process_ops_log`` and its detailed twin.

Their window is kept, so that a metric is the number that the helper told. On one device it is; the
times of several devices, which the helpers add up, are those of the slowest here: devices run side
by side.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_ttnn_perf._base.errors import UsageError
from pytest_ttnn_perf.analysis.ops.windows import between

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_ttnn_perf.records.ops import OpTable


#: The signposts that the helpers look for: the first of each.
_START: Final = "start"
_STOP: Final = "stop"


class HelperWindow(NamedTuple):
    """What a call of a helper takes of a report.

    ``skipped_rows`` are left out at the beginning. ``by_execution``: every row of an op is a
    sample, where the others take the sum of all rows.
    """

    op_name: str = ""
    has_signposts: bool = False
    skipped_rows: int = 0
    by_execution: bool = False


def between_signposts(table: OpTable, window: HelperWindow) -> OpTable:
    """Return what is between the signposts that a helper asks for, or all.

    Raises:
        UsageError: the report does not have them, or in another order.
    """
    if not window.has_signposts:
        return table
    names = [signpost.name for signpost in table.signposts]
    for name in (_START, _STOP):
        if name not in names:
            known = ", ".join(map(repr, dict.fromkeys(names))) or "none"
            message = f"the report has no signpost {name!r}; its signposts: {known}"
            raise UsageError(message)
    start, stop = names.index(_START), names.index(_STOP)
    if stop < start:
        message = f"the first signpost {_STOP!r} of the report is before the first {_START!r}"
        raise UsageError(message)
    return between(table, [(start, stop)])


def as_helper_sums(part: OpTable, window: HelperWindow, *, region: str = "") -> OpTable:
    """Return the ops that a helper sums, as one measured call, or as one for each execution.

    Replays of traces are not told apart: the helpers do not either.

    Raises:
        UsageError: no op has the name that is asked for.
    """
    rows = [row for row, host in enumerate(part.columns.host) if not host]
    if window.op_name:
        rows = _named(part, rows, window.op_name)
    rows = rows if not window.by_execution else _interleaved(part, rows)
    rows = rows[window.skipped_rows :]
    chosen = part.select(rows)
    nothing = [None] * len(rows)
    return replace(
        chosen,
        columns=replace(chosen.columns, trace=nothing, replay=nothing),
        unread=part.unread,
        windowed=True,
        calls=_executions(chosen) if window.by_execution else (),
        region=region,
    )


def _named(table: OpTable, rows: Sequence[int], name: str) -> list[int]:
    """Return the rows of an op: of its code, or else of what its code ends with or holds."""
    codes = [signature.op for signature in table.signatures]
    signature = table.columns.signature
    for matches in (
        lambda code: code == name,
        lambda code: code.endswith(f"::{name}"),
        lambda code: f"::{name}" in code or f"{name}>" in code,
    ):
        known = {number for number, code in enumerate(codes) if matches(code)}
        found = [row for row in rows if signature[row] in known]
        if found:
            return found
    message = f"the report has no op {name!r}"
    raise UsageError(message)


def _interleaved(table: OpTable, rows: Sequence[int]) -> list[int]:
    """Return rows by execution: the first of every device, then the second of every device."""
    count: dict[int, int] = {}
    ordered = []
    for row in rows:
        device = table.columns.device[row]
        count[device] = count.get(device, -1) + 1
        ordered.append((count[device], device, row))
    return [row for _, _, row in sorted(ordered)]


def _executions(table: OpTable) -> tuple[int, ...]:
    """Return where each execution begins: where a device comes again."""
    seen: set[int] = set()
    begins: list[int] = []
    for row, device in enumerate(table.columns.device):
        if device in seen or not begins:
            begins.append(row)
            seen.clear()
        seen.add(device)
    return tuple(begins)
