"""tt-metal's device-perf helpers: they profile a command in a child, and read its report.

``post_process_ops_log`` decides which report is read and what of it counts: signposts, one op,
without the first rows. The same of the same report is the metric here, on one device; the times of
several devices, which the helpers add up, are those of the slowest: devices run side by side.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pytest_ttnn_perf._base.errors import TtnnPerfError, UsageError
from pytest_ttnn_perf._base.text import plain
from pytest_ttnn_perf.analysis.captures.detect import op_table_of
from pytest_ttnn_perf.analysis.captures.device_metrics import (
    device_metrics,
    gated_ops,
    recorded_metric,
)
from pytest_ttnn_perf.analysis.captures.validity import why_invalid
from pytest_ttnn_perf.analysis.ops.windows import between
from pytest_ttnn_perf.records.metric import KERNEL_TIME, Kind, metric_in
from pytest_ttnn_perf.records.observation import Artifact, MetricObservation
from pytest_ttnn_perf.records.region import region_name
from pytest_ttnn_perf.records.settings import HelperAsserts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_ttnn_perf.observe.helpers.patches import Call
    from pytest_ttnn_perf.observe.recorder import Recorder
    from pytest_ttnn_perf.records.ops import OpTable


#: How the helpers name the report that they read; each looks it up in its own module.
_LATEST: Final = "get_latest_ops_log_filename"
_DURATION: Final = "AVG DEVICE KERNEL DURATION [ns]"
_RATE: Final = "AVG DEVICE KERNEL SAMPLES/S"
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


class DevicePerfCalls:
    """The reports that one test has read, and what it expects of them."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        #: The command that was profiled last, by the folder of its reports.
        self._commands: dict[str, str] = {}
        #: The name of each thing that is measured: a command, and what of its report counts.
        self._regions: dict[tuple[str, str, HelperWindow], str] = {}
        self._read: set[tuple[Path, str]] = set()
        self._devices = 1

    def handle(self, name: str, call: Call) -> Any:
        """Make the call; what was measured is kept also where a helper raises."""
        __tracebackhide__ = True
        if name == "run_device_profiler":
            with self._recorder.observing():
                self._profiled(call.arguments)
            return call.make()
        if name == "check_device_perf":
            with self._recorder.observing():
                self._expected(call.arguments)
            if self._recorder.run.helper_asserts is HelperAsserts.TARGET:
                return call.make(assert_on_fail=False)
            return call.make()
        try:
            return call.make()
        finally:
            with self._recorder.observing():
                self._post_processed(call, detailed=name.endswith("_detailed"))

    def _profiled(self, told: Mapping[str, Any]) -> None:
        self._recorder.profiles_itself = True
        self._commands[str(told.get("output_logs_subdir", ""))] = str(told.get("command", ""))

    def _post_processed(self, call: Call, *, detailed: bool) -> None:
        told = call.arguments
        subdir = str(told.get("output_logs_subdir", ""))
        file = _report(call, subdir)
        if file is None:
            return
        op_name = plain(str(told.get("op_name") or ""))
        window = HelperWindow(
            op_name,
            bool(told.get("has_signposts")),
            int(told.get("warmup_iters") or 0),
            by_execution=detailed and bool(op_name),
        )
        region = self._region(subdir, window)
        if (file, region) not in self._read:
            self._read.add((file, region))
            artifact = read_window(file, window, region)
            self._devices = max(self._devices, artifact.devices or 1)
            self._recorder.take_report(file, artifact)

    def _region(self, subdir: str, window: HelperWindow) -> str:
        """Return the name of what is measured; what is measured besides has another, in order."""
        key = (self._commands.get(subdir, ""), subdir, window)
        if key not in self._regions:
            base = region_name(window.op_name)
            taken, name, number = set(self._regions.values()), base, 1
            while name in taken:
                number += 1
                name = f"{base}_{number}" if base else f"command_{number}"
            self._regions[key] = name
        return self._regions[key]

    def _expected(self, told: Mapping[str, Any]) -> None:
        """Keep the expected kernel time as a target: of one device, whose time both mean."""
        results, expected = told["post_processed_results"], told["expected_perf_cols"]
        series = self._recorder.series_of(KERNEL_TIME)
        if series is None or self._devices > 1:
            return
        if _DURATION in expected:
            series.target = float(expected[_DURATION])
        elif _RATE in expected and _DURATION in results:
            # The batch size is in both: rate x time.
            series.target = float(results[_DURATION] * results[_RATE] / expected[_RATE])

    def finish(self) -> None:
        """Nothing is left to do."""


def _report(call: Call, subdir: str) -> Path | None:
    """Return the report that a helper reads, by its own word; None where there is none."""
    latest = call.names.get(_LATEST)
    if latest is None:
        return None
    try:
        file = Path(latest(subdir))
    except (OSError, LookupError, TypeError):  # the helper itself has just said so
        return None
    return file if file.is_file() else None


def read_window(file: Path, window: HelperWindow, region: str) -> Artifact:
    """Return what a report tells of a helper's window; why not, where it does not."""
    time = recorded_metric(metric_in(region, KERNEL_TIME), Kind.TIME)
    try:
        whole = op_table_of(file)
    except TtnnPerfError as error:
        return Artifact((MetricObservation(time, (), note=str(error)),))
    told = Artifact(arch=whole.arch, devices=len(whole.devices) or None)
    try:
        part = _between_signposts(whole, window)
        table = _as_helper_sums(part, window, region=region)
    except TtnnPerfError as error:
        return replace(told, metrics=(MetricObservation(time, (), note=f"{file.name}: {error}"),))
    flaw = why_invalid(part, file.name)
    if flaw is not None:
        return replace(told, metrics=(MetricObservation(time, (), note=flaw),), table=part)
    metrics = tuple(device_metrics(table, file=file.name))
    return replace(told, metrics=metrics, ops=gated_ops(table), table=part)


FAMILY: Final = DevicePerfCalls


def _between_signposts(table: OpTable, window: HelperWindow) -> OpTable:
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


def _as_helper_sums(part: OpTable, window: HelperWindow, *, region: str = "") -> OpTable:
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
