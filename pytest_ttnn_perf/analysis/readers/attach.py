"""Read captures for the gate: attached, printed, or recorded for a replay."""

from __future__ import annotations

from collections import Counter, defaultdict
from functools import reduce
from hashlib import blake2b
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from pytest_ttnn_perf.analysis.ops.regions import between, calls_between, why_invalid
from pytest_ttnn_perf.analysis.readers import CaptureFormat
from pytest_ttnn_perf.analysis.readers.benchmark_json import (
    metric_of_measurement,
    read_benchmark_run,
    read_benchmarks,
    system_in,
)
from pytest_ttnn_perf.analysis.readers.detect import (
    OP_TABLES,
    ArtifactKind,
    head_of,
    kernels_in,
    kind_of,
    op_table_of,
    part_of,
)
from pytest_ttnn_perf.analysis.readers.device_csv import (
    RegionChoice,
    call_metrics,
    device_metrics,
    gated_ops,
    kernel_metrics,
    missing_region,
    report_metrics,
    sim_metrics,
)
from pytest_ttnn_perf.analysis.readers.graph import read_held
from pytest_ttnn_perf.analysis.readers.report_db import group_calls, read_report_db
from pytest_ttnn_perf.analysis.readers.tt_smi import board_facts, board_of, read_tt_smi
from pytest_ttnn_perf.analysis.readers.ttlang import is_ttlang_log, parse_ttlang
from pytest_ttnn_perf.core.baseline import CAPTURE, ops_path, split_test_id
from pytest_ttnn_perf.core.errors import InputError, TtnnPerfError, UsageError
from pytest_ttnn_perf.core.files import open_file, reading
from pytest_ttnn_perf.core.metric import (
    KERNEL_TIME,
    Kind,
    Source,
    metric_in,
    recorded_metric,
)
from pytest_ttnn_perf.core.observation import NO_ARTIFACT, Artifact, MetricObservation
from pytest_ttnn_perf.core.text import text_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_ttnn_perf.analysis.readers.ttlang import TtlangLog
    from pytest_ttnn_perf.core.ops import OpTable
    from pytest_ttnn_perf.measure.helper_families import HelperWindow


#: The reading that the gate asks for, with what follows here.
__all__ = ["CaptureFormat", "calls_between", "metric_of_measurement", "op_table_of"]

ARTIFACTS: Final = frozenset(ArtifactKind) - {ArtifactKind.RUN_RECORD}
#: Formats of the same programs; of those that a folder has, the first counts.
_SAME: Final = (
    (ArtifactKind.OPS_CSV, ArtifactKind.CPP_REPORT),
    (ArtifactKind.PERF_SUMMARY_JSON, ArtifactKind.TTLANG_LOG),
)
#: All that a capture measures.
_EVERYTHING: Final = RegionChoice()
#: Files have the time of the last tick of the system's clock.
_TICK_S: Final = 0.02
_STDOUT: Final = "stdout"
#: The signposts that tt-metal's helpers look for: the first of each.
_START: Final = "start"
_STOP: Final = "stop"


def read_artifact(file: Path, choice: RegionChoice = _EVERYTHING) -> Artifact:
    """Read an artifact of a test, in any known format."""
    try:
        kind = kind_of(file)
        if kind not in ARTIFACTS:
            raise InputError(file, f"expected an artifact of a test, found {kind.value}")
    except InputError:
        artifact = _read_custom_format(file)  # ours come first: nobody can take them over
        if artifact is None:
            raise
        return artifact
    if kind in OP_TABLES:
        return _op_table(file, choice)
    if choice.start or choice.end:
        message = f"{file.name}: start and end are signposts of op tables, found {kind.value}"
        raise UsageError(message)
    return _read_kind(file, kind)


def _op_table(file: Path, choice: RegionChoice) -> Artifact:
    whole = op_table_of(file)
    known = Artifact(arch=whole.arch, devices=len(whole.devices) or None)
    try:
        table = part_of(whole, choice, file=file.name)
    except UsageError as error:
        # The test may ask for what only this capture lacks: its baseline knows.
        return replace(known, metrics=(missing_region(choice, str(error)),))
    return known.completed_by(measured_ops(table, file.name))


def measured_ops(table: OpTable, file: str) -> Artifact:
    return Artifact(tuple(device_metrics(table, file=file)), ops=gated_ops(table), table=table)


def _read_kind(file: Path, kind: ArtifactKind) -> Artifact:
    match kind:
        case ArtifactKind.REPORT_DB:
            report = read_report_db(file)
            return Artifact(tuple(report_metrics(report)), ops=group_calls(report), report=report)
        case ArtifactKind.PERF_SUMMARY_JSON | ArtifactKind.TTLANG_LOG | ArtifactKind.SIM_TRACE:
            return _kernels(kernels_in(file), file.name)
        case ArtifactKind.TT_SMI:
            snapshot = read_tt_smi(file)
            return Artifact(board=board_of(snapshot), environment=board_facts(snapshot))
    return _benchmark(file)


def _kernels(log: TtlangLog, file: str) -> Artifact:
    metrics = kernel_metrics(log, file=file) if log.sim is None else sim_metrics(log.sim)
    chip = next((summary for summary in log.perf_summaries if summary.arch), None)
    known = Artifact() if chip is None else Artifact(
        arch=chip.arch, environment={"clock_mhz": chip.clock_mhz})  # fmt: skip
    return replace(known, metrics=tuple(metrics), kernels=log)


def _benchmark(file: Path) -> Artifact:
    benchmarks = read_benchmarks(file)
    if len(benchmarks) > 1:
        problem = f"expected the result of one benchmark, found {len(benchmarks)}"
        raise InputError(file, f"{problem}: judge them with ttnn-perf gate {file}")
    (judged,) = read_benchmark_run(file).tests.values()
    (arch, board, _), observation = system_in(benchmarks[0]), judged.observation
    return Artifact(
        tuple(observation.metrics.values()),
        arch=arch,
        board=board,
        hardware=observation.hardware,
        facts=observation.setting,
        environment=observation.environment,
    )


# Capture formats of other plugins and of conftest files, for ``attach`` and replays.

_formats: tuple[CaptureFormat, ...] = ()


def use_capture_formats(formats: Sequence[CaptureFormat]) -> None:
    """Read these formats of other plugins too."""
    global _formats  # noqa: PLW0603 (a process has one set of formats)
    _formats = tuple(formats)


def _read_custom_format(file: Path) -> Artifact | None:
    """Read a file of another plugin's format, if one recognises it."""
    try:
        head = head_of(file) if _formats else b""
    except InputError:
        return None
    known = [custom for custom in _formats if head and _recognises(custom, file, head)]
    if not known:
        return None
    if len(known) > 1:
        both = " and ".join(repr(custom.name) for custom in known)
        raise InputError(file, f"several formats recognise it: {both}")
    chosen = known[0]
    reader = f"the reader of {chosen.name!r}"
    try:
        artifact: object = chosen.read(file)
    except TtnnPerfError:
        raise  # a sentence already
    except Exception as error:
        problem = f"{reader} raised {type(error).__name__}: {text_of(error)}"
        raise InputError(file, problem) from error
    if not isinstance(artifact, Artifact):
        found = type(artifact).__name__
        raise InputError(file, f"{reader} returned {found} instead of an Artifact")
    if not all(isinstance(metric, MetricObservation) for metric in artifact.metrics):
        raise InputError(file, f"{reader} returned metrics that are not made by capture_metric()")
    return artifact


def _recognises(custom: CaptureFormat, file: Path, head: bytes) -> bool:
    try:
        return custom.recognises(head)
    except Exception as error:
        problem = f"recognises() of {custom.name!r} raised"
        raise InputError(file, f"{problem} {type(error).__name__}: {text_of(error)}") from error


# Captures of a test: attached, captured by the run, printed, or recorded for a replay.


def read_attached(
    file: Path, region: str | None, start: str | None, end: str | None, *, began_s: float
) -> Artifact:
    """Read an artifact; name an older one by its content."""
    artifact = read_artifact(file, RegionChoice(region, start, end))
    with reading(file):
        is_older = file.stat().st_mtime < began_s - _TICK_S
    return _named_by_content(artifact, file) if is_older else artifact


def _named_by_content(artifact: Artifact, file: Path) -> Artifact:
    """Name metrics by the content of their file."""
    digest = blake2b(digest_size=6)
    with reading(file), open_file(file) as stream:
        while part := stream.read(2**20):
            digest.update(part)
    name = f"{CAPTURE}{digest.hexdigest()}"
    return replace(artifact, metrics=tuple(replace(m, capture=name) for m in artifact.metrics))


def read_captured_call(database: Path, graph: Path) -> Artifact:
    report, held = read_report_db(database), read_held(graph)
    return Artifact(tuple(call_metrics(report, held)), ops=group_calls(report), report=report)


def printed_artifact(text: str) -> Artifact:
    """Return what tt-lang printed among the output of a test."""
    text = text.replace("\0", "")
    if not is_ttlang_log(text):
        return NO_ARTIFACT
    return _kernels(parse_ttlang(text, Path(_STDOUT)), _STDOUT)


def read_recorded(root: Path, names: Sequence[str], region: str | None = None) -> Artifact:
    """Read all that was recorded of a test as one artifact.

    It may be recorded under any of its ``names``; the first that has files counts. Of op tables, a
    ``region`` may be chosen. A test of which nothing was recorded, or something that is damaged,
    has a kernel time without samples that says so.
    """
    files = next(filter(None, (recorded_files(root, test) for test in names)), [])
    if not files:
        known = (place for test in names for place in _places(root, test))
        places = dict.fromkeys(f"{place.relative_to(root)}.*" for place in known)
        wanted = " or ".join(places)
        return _nothing(f"nothing is recorded for this test in {root.name}: expected {wanted}")
    try:
        read = _read_all(files, region)
    except TtnnPerfError as error:
        return _nothing(str(error))
    if not read:
        return _nothing(f"{files[0].name}: no artifact of a known format is recorded for this test")
    origins: dict[str, Path] = {}
    for file, artifact in read.items():
        for name in (observed.metric.name for observed in artifact.metrics):
            first = origins.setdefault(name, file)
            if first != file:  # the middle of two captures is the time of neither
                both = f"{first.name} and {file.name} both contain {name}"
                return _nothing(f"{both}: keep one capture of each kind for a test")
    whole = reduce(Artifact.completed_by, read.values(), NO_ARTIFACT)
    replayed = (
        replace(observed, metric=replace(observed.metric, source=Source.REPLAY))
        if observed.metric.source is Source.DEVICE
        else observed
        for observed in whole.metrics
    )
    return replace(whole, metrics=tuple(replayed))


def _read_all(files: Sequence[Path], region: str | None) -> dict[Path, Artifact]:
    by_kind: dict[ArtifactKind, list[Path]] = defaultdict(list)
    others: list[Path] = []  # a profiler leaves many of them
    for file in files:
        try:
            kind = kind_of(file)
        except InputError:
            others.append(file)
        else:
            (by_kind[kind] if kind in ARTIFACTS else others).append(file)
    for same in _SAME:
        for doubled in [kind for kind in same if kind in by_kind][1:]:
            del by_kind[doubled]
    read = {
        file: _named_by_content(read_artifact(file, RegionChoice(region)), file)
        for group in by_kind.values()
        for file in group
    }
    custom = {file: _read_custom_format(file) for file in others}
    return read | {file: artifact for file, artifact in custom.items() if artifact is not None}


def _places(root: Path, test: str) -> Iterator[Path]:
    test_file, name = split_test_id(test)
    if "/" not in name and len(name.encode()) < 200:
        yield root / test_file.removesuffix(".py") / name
    escaped = root / ops_path(test).with_suffix("")
    yield escaped.parent.with_suffix("") / escaped.name


def recorded_files(root: Path, test: str) -> list[Path]:
    """Return the files in a test's folder, or of its name."""
    for place in _places(root, test):
        if place.is_dir():
            return sorted(file for file in place.rglob("*") if file.is_file())
        if place.parent.is_dir():
            found = sorted(
                file
                for file in place.parent.iterdir()
                if Path(file.name.removesuffix(".gz")).stem == place.name and file.is_file()
            )
            if found:
                return found
    return []


def _nothing(why: str) -> Artifact:
    time = recorded_metric(KERNEL_TIME, Kind.TIME, source=Source.REPLAY)
    return Artifact((MetricObservation(time, (), note=why),))


# Windows of reports that tt-metal's device-perf helpers sum up.


def read_window(file: Path, window: HelperWindow, region: str) -> Artifact:
    time = recorded_metric(metric_in(region, KERNEL_TIME), Kind.TIME)
    try:
        whole = op_table_of(file)
    except TtnnPerfError as error:
        return Artifact((MetricObservation(time, (), note=str(error)),))
    known = Artifact(arch=whole.arch, devices=len(whole.devices) or None)
    try:
        part = _between_signposts(whole) if window.has_signposts else whole
        table = _as_helper_sums(part, window, region)
    except TtnnPerfError as error:
        return replace(known, metrics=(MetricObservation(time, (), note=f"{file.name}: {error}"),))
    flaw = why_invalid(part, file.name)
    if flaw is not None:
        return replace(known, metrics=(MetricObservation(time, (), note=flaw),), table=part)
    measured = measured_ops(table, file.name)
    if window.by_execution:
        measured = replace(measured, metrics=tuple(map(_as_mean, measured.metrics)))
    return replace(known.completed_by(measured), table=part)


def _as_mean(observed: MetricObservation) -> MetricObservation:
    """Return the mean of executions, which is what the helper compares.

    Its source is the report: that of the median, which baselines had, was the device.
    """
    if not observed.metric.compared_by_ratio or not observed.samples:
        return observed
    metric = replace(observed.metric, source=Source.REPORT)
    return replace(observed, metric=metric, samples=(fmean(observed.samples),))


def _between_signposts(table: OpTable) -> OpTable:
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


def _as_helper_sums(part: OpTable, window: HelperWindow, region: str) -> OpTable:
    """Return the ops that a helper sums, as one call or several.

    Replays of traces are not kept apart: the helpers do not either.
    """
    devices = part.columns.device
    rows = [row for row, host in enumerate(part.columns.host) if not host]
    if window.op_name:
        rows = _named(part, rows, window.op_name)
    if window.by_execution:  # the first of every device, then the second of every device
        count: Counter[int] = Counter()
        ordered = []
        for row in rows:
            ordered.append((count[devices[row]], devices[row], row))
            count[devices[row]] += 1
        rows = [row for _, _, row in sorted(ordered)]
    rows = rows[window.skipped_rows :]
    chosen = part.select(rows)
    begins: list[int] = []
    seen: set[int] = set()
    for row, device in enumerate(chosen.columns.device):
        if device in seen or not begins:  # a device comes again: the next execution
            begins.append(row)
            seen.clear()
        seen.add(device)
    nothing = [None] * len(rows)
    return replace(
        chosen,
        columns=replace(chosen.columns, trace=nothing, replay=nothing),
        unread=part.unread,
        windowed=True,
        calls=tuple(begins) if window.by_execution else (),
        region=region,
    )


def _named(table: OpTable, rows: Sequence[int], name: str) -> list[int]:
    """Return the rows of an op, by its code or a part."""
    for matches in (
        lambda code: code == name,
        lambda code: code.endswith(f"::{name}"),
        lambda code: f"::{name}" in code or f"{name}>" in code,
    ):
        known = {number for number, each in enumerate(table.signatures) if matches(each.op)}
        found = [row for row in rows if table.columns.signature[row] in known]
        if found:
            return found
    message = f"the report has no op {name!r}"
    raise UsageError(message)
