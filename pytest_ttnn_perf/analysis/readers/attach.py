"""Read captures for the gate: formats by content, metrics and ops, replays, printed profiles."""

from __future__ import annotations

from collections import defaultdict
from functools import reduce
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from pytest_ttnn_perf.analysis.ops.regions import between
from pytest_ttnn_perf.analysis.ops.validity import why_invalid
from pytest_ttnn_perf.analysis.readers.benchmark_json import read_benchmarks
from pytest_ttnn_perf.analysis.readers.detect import (
    OP_TABLES,
    ArtifactKind,
    head_of,
    kind_of,
    op_table_of,
    part_of,
)
from pytest_ttnn_perf.analysis.readers.device_csv import (
    call_metrics,
    device_metrics,
    gated_ops,
    graph_metrics,
    log_metrics,
    missing_region,
    read_device_log,
    report_metrics,
    sim_metrics,
)
from pytest_ttnn_perf.analysis.readers.graph import read_graph_json, read_held
from pytest_ttnn_perf.analysis.readers.report_db import group_calls, read_report_db
from pytest_ttnn_perf.analysis.readers.tt_smi import board_facts, board_of, read_tt_smi
from pytest_ttnn_perf.analysis.readers.ttlang import (
    is_ttlang_log,
    kernel_metrics,
    parse_ttlang,
    read_perf_summary_json,
    read_ttlang_log,
    summary_metrics,
)
from pytest_ttnn_perf.analysis.readers.ttlang_sim import read_sim_stats, read_sim_trace
from pytest_ttnn_perf.core.baseline import CAPTURE, ops_path, split_test_id
from pytest_ttnn_perf.core.errors import InputError, TtnnPerfError, UsageError
from pytest_ttnn_perf.core.files import open_file, reading
from pytest_ttnn_perf.core.finding import RegionChoice
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
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pytest_ttnn_perf.core.finding import HelperWindow
    from pytest_ttnn_perf.core.observation import CaptureFormat
    from pytest_ttnn_perf.core.ops import OpTable


# Capture formats of other plugins and of conftest files, for ``attach`` and replays.


_formats: tuple[tuple[CaptureFormat, str], ...] = ()


def use_capture_formats(formats: Sequence[tuple[CaptureFormat, str]]) -> None:
    """Read these formats too, and no others than ours; each with the plugin that it is of."""
    global _formats  # noqa: PLW0603 (a process has one set of formats)
    _formats = tuple(formats)


def read_custom_format(file: Path) -> Artifact | None:
    """Return what a file of another plugin's format tells; None if none of them knows it.

    Nobody knows a file that is empty or cannot be read.

    Raises:
        InputError: several know it, or its reader failed.
    """
    if not _formats:
        return None
    try:
        head = head_of(file)
    except InputError:
        return None
    if not head:
        return None
    known = list(_recognised(file, head))
    if not known:
        return None
    if len(known) > 1:
        both = " and ".join(f"{known_format.name!r} (of {owner})" for known_format, owner in known)
        raise InputError(file, f"several formats recognise it: {both}")
    chosen, owner = known[0]
    reader = f"the reader of {chosen.name!r}, which is of {owner},"
    try:
        artifact: object = chosen.read(file)
    except TtnnPerfError:
        raise  # a sentence already
    except Exception as error:
        raise InputError(
            file, f"{reader} raised {type(error).__name__}: {text_of(error)}"
        ) from error
    if not isinstance(artifact, Artifact):
        found = type(artifact).__name__
        raise InputError(file, f"{reader} returned {found} instead of an Artifact")
    if not all(isinstance(metric, MetricObservation) for metric in artifact.metrics):
        raise InputError(file, f"{reader} returned metrics that are not made by capture_metric()")
    return artifact


def _recognised(file: Path, head: bytes) -> Iterator[tuple[CaptureFormat, str]]:
    for known_format, owner in _formats:
        try:
            matches = known_format.recognises(head)
        except Exception as error:
            problem = f"recognises() of {known_format.name!r}, which is of {owner}, raised"
            raise InputError(file, f"{problem} {type(error).__name__}: {text_of(error)}") from error
        if matches:
            yield known_format, owner


#: All that a capture measures.
_EVERYTHING: Final = RegionChoice()


def read_artifact(file: Path, choice: RegionChoice = _EVERYTHING) -> Artifact:
    """Return what an artifact tells.

    Raises:
        InputError: the file is of no known format, tells nothing of a test, or is damaged.
    """
    try:
        kind = kind_of(file)
        if kind not in ARTIFACTS:
            raise InputError(file, f"expected an artifact of a test, found {kind.value}")
    except InputError:
        artifact = read_custom_format(file)  # ours come first: nobody can take them over
        if artifact is None:
            raise
        return artifact
    if kind in OP_TABLES:
        return _op_table(file, choice)
    if choice.start or choice.end:
        message = f"{file.name}: start and end are signposts of op tables, found {kind.value}"
        raise UsageError(message)
    return ARTIFACTS[kind](file)


#: Files have the time of the last tick of the system's clock.
_TICK_S: Final = 0.02


def read_attached(file: Path, choice: RegionChoice, *, began_s: float) -> Artifact:
    """Return what an artifact tells; one that was there before a moment is named by its content.

    Raises:
        InputError, UsageError: as ``read_artifact``.
    """
    artifact = read_artifact(file, choice)
    return named_by_content(artifact, file) if _is_older(file, began_s) else artifact


def _is_older(file: Path, moment_s: float) -> bool:
    with reading(file):
        return file.stat().st_mtime < moment_s - _TICK_S


def named_by_content(artifact: Artifact, file: Path) -> Artifact:
    """Return what a file tells, named by its content: it says the same however often it is read."""
    digest = blake2b(digest_size=6)
    with reading(file), open_file(file) as stream:
        while part := stream.read(2**20):
            digest.update(part)
    name = f"{CAPTURE}{digest.hexdigest()}"
    return replace(artifact, metrics=tuple(replace(m, capture=name) for m in artifact.metrics))


def _op_table(file: Path, choice: RegionChoice = _EVERYTHING) -> Artifact:
    whole = op_table_of(file)
    told = Artifact(arch=whole.arch, devices=len(whole.devices) or None)
    try:
        table = part_of(whole, choice, file=file.name)
    except UsageError as error:
        # The test may ask for what only this capture lacks: its baseline knows.
        return replace(told, metrics=(missing_region(choice, str(error)),))
    return told.completed_by(measured_ops(table, file.name))


def _device_log(file: Path) -> Artifact:
    log = read_device_log(file)
    devices = len({program.device for program in log.programs}) or None
    return Artifact(
        tuple(log_metrics(log, file=file.name)),
        arch=log.arch,
        devices=devices,
        environment={"clock_mhz": log.clock_mhz},
    )


def _summary(file: Path) -> Artifact:
    summary = read_perf_summary_json(file)
    clock = {} if summary.clock_mhz is None else {"clock_mhz": summary.clock_mhz}
    metrics = tuple(summary_metrics(summary, file=file.name))
    return Artifact(metrics, arch=summary.arch, environment=clock)


def _ttlang(file: Path) -> Artifact:
    log = read_ttlang_log(file)
    return Artifact(tuple(kernel_metrics(log, file=file.name)), kernels=log)


def _report(file: Path) -> Artifact:
    report = read_report_db(file)
    return Artifact(tuple(report_metrics(report)), ops=group_calls(report), report=report)


def _graph(file: Path) -> Artifact:
    graph = read_graph_json(file)
    return Artifact(tuple(graph_metrics(graph)), ops=group_calls(graph), report=graph)


def read_captured_call(database: Path, graph: Path) -> Artifact:
    """Return what the report database of one call of a model tells, and the graph it is made of.

    Raises:
        InputError: one of them is damaged, or has no call.
    """
    report, held = read_report_db(database), read_held(graph)
    return Artifact(tuple(call_metrics(report, held)), ops=group_calls(report), report=report)


def _boards(file: Path) -> Artifact:
    snapshot = read_tt_smi(file)
    return Artifact(board=board_of(snapshot), environment=board_facts(snapshot))


def _benchmark(file: Path) -> Artifact:
    from pytest_ttnn_perf.analysis.readers.benchmark_json import read_benchmark_run, system_in

    benchmarks = read_benchmarks(file)
    if len(benchmarks) > 1:
        problem = f"expected the result of one benchmark, found {len(benchmarks)}"
        raise InputError(file, f"{problem}: judge them with ttnn-perf gate {file}")
    (judged,) = read_benchmark_run(file).tests.values()
    system, observation = system_in(benchmarks[0]), judged.observation
    return Artifact(
        tuple(observation.metrics.values()),
        arch=system.arch,
        board=system.board,
        hardware=observation.hardware,
        facts=observation.setting.values,
        environment=observation.environment,
    )


#: The formats that tell something of a test, and how.
ARTIFACTS: Final[Mapping[ArtifactKind, Callable[[Path], Artifact]]] = {
    **dict.fromkeys(OP_TABLES, _op_table),
    ArtifactKind.DEVICE_LOG: _device_log,
    ArtifactKind.REPORT_DB: _report,
    ArtifactKind.GRAPH_JSON: _graph,
    ArtifactKind.PERF_SUMMARY_JSON: _summary,
    ArtifactKind.TTLANG_LOG: _ttlang,
    ArtifactKind.SIM_TRACE: lambda file: Artifact(tuple(sim_metrics(read_sim_trace(file)))),
    ArtifactKind.SIM_STATS: lambda file: Artifact(tuple(sim_metrics(read_sim_stats(file)))),
    ArtifactKind.BENCHMARK_JSON: _benchmark,
    ArtifactKind.TT_SMI: _boards,
}
_STDOUT = "stdout"


def printed_artifact(text: str) -> Artifact:
    """Return what tt-lang printed among the output of a test; nothing of a test without any."""
    text = text.replace("\0", "")
    if not is_ttlang_log(text):
        return NO_ARTIFACT
    log = parse_ttlang(text, Path(_STDOUT))
    arch = next((summary.arch for summary in log.perf_summaries if summary.arch), None)
    return Artifact(tuple(kernel_metrics(log, file=_STDOUT)), arch=arch, kernels=log)


#: Formats that tell the same of the same programs; of those that a folder has, the first counts.
_SAME: Final = (
    (ArtifactKind.OPS_CSV, ArtifactKind.CPP_REPORT, ArtifactKind.DEVICE_LOG),
    (ArtifactKind.REPORT_DB, ArtifactKind.GRAPH_JSON),
    (ArtifactKind.PERF_SUMMARY_JSON, ArtifactKind.TTLANG_LOG),
    (ArtifactKind.SIM_TRACE, ArtifactKind.SIM_STATS),
)


def read_recorded(root: Path, names: Sequence[str], region: str | None = None) -> Artifact:
    """Return what was recorded of a test, all artifacts as one; a device's numbers as replayed.

    It may be recorded under any of its ``names``; the first that anything is recorded under counts.

    Of op tables it is that of a ``region``, if one is given.
    A test of which nothing was recorded, or something that is damaged, has a kernel time without
    samples that says so.
    """
    files = next(filter(None, (recorded_files(root, test) for test in names)), [])
    if not files:
        known = (place for test in names for place in _places(root, test))
        places = dict.fromkeys(f"{place.relative_to(root)}.*" for place in known)
        wanted = " or ".join(places)
        return _nothing(f"nothing is recorded for this test in {root.name}: expected {wanted}")
    kinds = dict(_known(files))
    by_kind: dict[ArtifactKind, list[Path]] = defaultdict(list)
    for file, kind in kinds.items():
        by_kind[kind].append(file)
    for same in _SAME:
        for doubled in [kind for kind in same if kind in by_kind][1:]:
            del by_kind[doubled]
    try:
        read = {
            file: named_by_content(read_artifact(file, RegionChoice(region)), file)
            for group in by_kind.values()
            for file in group
        }
        custom = {file: read_custom_format(file) for file in files if file not in kinds}
    except TtnnPerfError as error:
        return _nothing(str(error))
    read |= {file: artifact for file, artifact in custom.items() if artifact is not None}
    if not read:
        return _nothing(f"{files[0].name}: no artifact of a known format is recorded for this test")
    problem = _told_twice(read)
    if problem is not None:
        return _nothing(problem)
    whole = reduce(Artifact.completed_by, read.values(), NO_ARTIFACT)
    return replace(whole, metrics=tuple(map(_as_replayed, whole.metrics)))


def _told_twice(read: Mapping[Path, Artifact]) -> str | None:
    """Say which files tell the same: the middle of two captures is the time of neither."""
    origins: dict[str, Path] = {}
    for file, artifact in read.items():
        for observed in artifact.metrics:
            first = origins.setdefault(observed.metric.name, file)
            if first != file:
                both = f"{first.name} and {file.name}"
                name = observed.metric.name
                return f"{both} both contain {name}: keep one capture of each kind for a test"
    return None


def _places(root: Path, test: str) -> Iterator[Path]:
    """Yield where the artifacts of a test may be: by its name, or as baselines spell it."""
    test_file, name = split_test_id(test)
    if "/" not in name and len(name.encode()) < 200:
        yield root / test_file.removesuffix(".py") / name
    escaped = root / ops_path(test).with_suffix("")
    yield escaped.parent.with_suffix("") / escaped.name


def recorded_files(root: Path, test: str) -> list[Path]:
    """Return the files of a test: those in the folder of its name, or named as it."""
    for place in _places(root, test):
        if place.is_dir():
            return sorted(file for file in place.rglob("*") if file.is_file())
        if place.parent.is_dir():
            beside = (file for file in place.parent.iterdir() if _stem(file) == place.name)
            found = sorted(file for file in beside if file.is_file())
            if found:
                return found
    return []


def _stem(file: Path) -> str:
    return Path(file.name.removesuffix(".gz")).stem


def _known(files: list[Path]) -> Iterator[tuple[Path, ArtifactKind]]:
    """Yield the artifacts among files; a profiler leaves many others beside them."""
    for file in files:
        try:
            kind = kind_of(file)
        except InputError:
            continue
        if kind in ARTIFACTS:
            yield file, kind


def _as_replayed(observed: MetricObservation) -> MetricObservation:
    if observed.metric.source is not Source.DEVICE:
        return observed
    return replace(observed, metric=replace(observed.metric, source=Source.REPLAY))


def _nothing(why: str) -> Artifact:
    time = recorded_metric(KERNEL_TIME, Kind.TIME, source=Source.REPLAY)
    return Artifact((MetricObservation(time, (), note=why),))


def measured_ops(table: OpTable, file: str) -> Artifact:
    """Return the metrics and ops of a table; those of an invalid one have no samples."""
    return Artifact(tuple(device_metrics(table, file=file)), ops=gated_ops(table), table=table)


# What tt-metal's device-perf helpers take of a report.

#: The signposts that the helpers look for: the first of each.
_START: Final = "start"
_STOP: Final = "stop"


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
