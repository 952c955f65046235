"""Benchmark results in JSON: tt-metal, dashboards, tt-xla, vLLM, inference servers.

All become runs of one form. A file has one of them, or several: as a list, as one per line, or as
the report of a server.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from fnmatch import fnmatchcase
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from msgspec.structs import replace

from pytest_ttnn_perf.core.codec import LARGEST, LARGEST_COUNT, Value, decode
from pytest_ttnn_perf.core.errors import DecodeError, InputError
from pytest_ttnn_perf.core.files import open_file, parse_json, read_text, reading
from pytest_ttnn_perf.core.hardware import (
    Environment,
    Hardware,
    Scalar,
    first_difference,
    system_of,
)
from pytest_ttnn_perf.core.metric import Better, Kind, Metric, metric_in
from pytest_ttnn_perf.core.observation import (
    JudgedTest,
    Limits,
    MetricObservation,
    Observation,
    Run,
)
from pytest_ttnn_perf.core.settings import project_settings
from pytest_ttnn_perf.report.benchmark_json import OURS, WHOLE_RUN, BenchmarkRun, Measurement

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from pytest_ttnn_perf.core.settings import Declared


# Measurement names: a benchmark JSON gives a name and a number, and only the name has a meaning. A
# name that is not in the tables is recorded and not gated: its direction is unknown.

NOTHING_DECLARED: Final[Mapping[str, Declared]] = {}
#: Why a measurement is not gated whose name is not known.
UNKNOWN_NAME: Final = "unknown measurement name"
_COMPILE: Final = "a compile time"
_PLACEHOLDER: Final = "a placeholder of a run that measured nothing"
_FORCED: Final = "measured while the tokens of a reference are fed, which is no real decoding"

#: Unit, kind, why it is not gated, and names, of tt-metal, tt-xla, vLLM and inference servers.
_NAMES: Final[tuple[tuple[str, Kind, str | None, str], ...]] = (
    # model_targets.yaml has prefill_time_to_first_token in milliseconds, results in seconds.
    ("s", Kind.TIME, None, "TTFT time_to_token prefill_time_to_token prefill_time_to_first_token "
     "inference_time inference_time_s e2e_latency device_fw_duration device_kernel_duration"),
    ("ms", Kind.TIME, None, "avg_decode_time_first_128 ttft e2el"),
    ("tok/s", Kind.THROUGHPUT, None, "tokens/s tokens_per_sec prefill_t/s decode_t/s "
     "tokens_per_second decode_tokens_per_second output_throughput tps_decode_throughput "
     "tps_prefill_throughput tput tput_prefill"),
    ("tok/s/user", Kind.THROUGHPUT, None, "tokens/s/user tokens_per_sec_per_user decode_t/s/u "
     "prefill_decode_t/s/u tsu_e2e mean_tps tput_user t/s/u"),
    ("req/s", Kind.THROUGHPUT, None, "request_throughput req_tput request_goodput"),
    ("samples/s", Kind.THROUGHPUT, None, "throughput_iter_per_s samples_per_sec"),
    ("steps/s", Kind.THROUGHPUT, None, "inference_steps_per_second"),
    ("1/s", Kind.THROUGHPUT, None, "throughput"),
    ("fps", Kind.THROUGHPUT, None, "fps"),
    ("images/s", Kind.THROUGHPUT, None, "images_per_sec"),
    ("x", Kind.THROUGHPUT, None, "real_time_factor rtfx rtr"),
    # tt-metal and tt-xla write 95.5 for 95.5 %.
    ("%", Kind.ACCURACY, None, "top1 top5 top1_token_accuracy top5_token_accuracy "
     "ifeval_accuracy top1_accuracy top5_accuracy"),
    ("", Kind.ACCURACY, None, "token_verification pearson_correlation evaluation_score score"),
    # A benchmark that loses requests looks faster.
    ("requests", Kind.COUNT, None, "completed failed"),
    ("s", Kind.TIME, _COMPILE, "compile_prefill compile_decode"),
    ("s", Kind.TIME, "the throughput says the same", "duration total_time"),
)  # fmt: skip
_TIME: Final = r"(?i:time|latency|ttft|tpot|itl|e2el|kernel_duration|fw_duration|kernel|op_to_op)"
_UNIT: Final = r"(?P<unit>ns|us|ms|s)"
_READYING: Final = (
    r"(?:.*[_-])?(?:warm_?up|load(?:ing)?|set_?up|init|download|start_?up|cold_start)"
)
_LATENCY: Final = r"(?:ttft|tpot|itl|e2el|e2e_latency)_ms"
#: Names that are made by a rule, with unit, kind and why they are not gated. The first that fits
#: counts: what is not gated comes first. A unit in the name wins.
_FAMILIES: Final = tuple(
    (re.compile(pattern), unit, kind, why)
    for pattern, unit, kind, why in (
        (rf"(?i:expected)[_ -].*?(?:[_(]{_UNIT}\)?)?", "", Kind.TIME,
         "an expected value, not a measurement"),
        (rf"(?:.*_)?compile(?:_.*)?_{_UNIT}", "", Kind.TIME, _COMPILE),
        (rf"{_READYING}_(?:time|latency)_{_UNIT}", "", Kind.TIME,
         "the time to get ready, not to run"),
        (rf"(?:.*_)?cpu_(?:.*_)?{_UNIT}", "", Kind.TIME,
         "measured on the host's CPU, as a reference"),
        # p100 and p150 are boards, too.
        (rf"(?:min|max|std|p[1-9]\d?(?:\.\d+)?|p100(?=_{_LATENCY}))_.+_{_UNIT}", "", Kind.TIME,
         "a percentile or a spread: mean and median are gated"),
        (rf"(?:mean|median)_{_LATENCY}", "ms", Kind.TIME, None),
        (rf"AVG DEVICE .* DURATION \[{_UNIT}\]", "", Kind.TIME, None),
        (r"AVG DEVICE .* SAMPLES/S", "samples/s", Kind.THROUGHPUT, None),
        (rf".*[_-]avg[_-]{_UNIT}", "", Kind.TIME, None),
        (r".*_step_mean_s", "s", Kind.TIME, None),
        (rf"(?:.*[_ -])?{_TIME}(?:_(?:avg|mean))?[_-]{_UNIT}", "", Kind.TIME, None),
        (r"(?:.*[_-])?pcc", "", Kind.ACCURACY, None),
    )
)  # fmt: skip
_NO_RESULT: Final = r"(?!.*(?i:std|min|max|cv|target|expected|ratio|bound|p\d\d?)(?:[_-]|$))"
_NO_LOSS: Final = r"(?!.*(?i:error|fail|retr|drop|stall|miss|timeout).*_per_)"
#: Names that no table has and that cannot be misread; a run says which it read so.
_INFERRED: Final = tuple(
    (re.compile(pattern), unit, kind)
    for pattern, unit, kind in (
        (rf"{_NO_RESULT}{_NO_LOSS}(?:.*_)?(?P<of>[a-z]+)_per_sec(?:ond)?", "{of}/s",
         Kind.THROUGHPUT),
        (rf"{_NO_RESULT}(?i:throughput)(?:[_-].*)?", "1/s", Kind.THROUGHPUT),
        (rf"{_NO_RESULT}(?i:latency)(?:[_-].*)?", "", Kind.TIME),
        (rf"{_NO_RESULT}(?:.*[_-])?(?i:kernel|op_to_op|first_to_last|time|latency|duration)[_-]avg",
         "", Kind.TIME),
    )
)  # fmt: skip


class KnownMeasurement(NamedTuple):
    """The meaning of a measurement's name; a ``note`` if inferred."""

    unit: str
    better: Better
    kind: Kind
    why_ungated: str | None = None
    note: str | None = None


_BY_NAME: Final = {
    name: KnownMeasurement(
        unit, Better.HIGHER if name == "completed" else kind.usual_direction, kind, why
    )
    for unit, kind, why, names in _NAMES
    for name in names.split()
}


def known_measurement(name: str, step: str = "") -> KnownMeasurement | None:
    """Return the meaning of a measurement by name and step.

    >>> known_measurement("time_to_token", "inference_prefill").unit
    's'
    >>> known_measurement("mood") is None
    True
    """
    if step == "empty_run":  # written only because a dashboard refuses an empty file
        return KnownMeasurement("", Better.LOWER, Kind.TIME, _PLACEHOLDER)
    if step.startswith("compile"):
        ending = re.search(r"[_\W](ns|us|ms|s)\W*$", name)
        return KnownMeasurement(ending[1] if ending else "s", Better.LOWER, Kind.TIME, _COMPILE)
    # The pipelines of tt_dit name the time of a step by the step.
    if step == name and step in {"encoder", "denoising", "vae", "run"}:
        return KnownMeasurement("s", Better.LOWER, Kind.TIME)
    if name in _BY_NAME:
        return _BY_NAME[name]
    for pattern, unit, kind, why in _FAMILIES:
        found = pattern.fullmatch(name)
        if found is not None:
            own = found.groupdict().get("unit")
            return KnownMeasurement(own or unit, kind.usual_direction, kind, why)
    for pattern, unit, kind in _INFERRED:
        found = pattern.fullmatch(name)
        if found is not None:
            better = kind.usual_direction
            note = f"gated by its name: {better.value} is better"
            return KnownMeasurement(unit.format(**found.groupdict()), better, kind, note=note)
    return None


class NamedMetric(NamedTuple):
    """The metric of a measurement; a ``note`` if inferred."""

    metric: Metric
    why_ungated: str | None
    note: str | None = None


def metric_of_measurement(
    name: str, step: str = "", declared: Mapping[str, Declared] = NOTHING_DECLARED
) -> NamedMetric:
    """Return the metric of a measurement; what a project declares comes first.

    A step stands where the name of a region does: two steps may measure under one name.

    >>> metric_of_measurement("tokens/s", "inference_decode").metric.name
    'tokens/s.inference_decode'
    """
    full_name = metric_in("" if step == name else step, name)
    own = next((d for p, d in declared.items() if fnmatchcase(name, p)), None)
    own = own or next((d for p, d in declared.items() if fnmatchcase(full_name, p)), None)
    if own is not None:
        why = None if own[1] else "declared as recorded only"
        return NamedMetric(replace(own[0], name=full_name), why)
    known = known_measurement(name, step)
    if known is None:
        return NamedMetric(Metric(full_name, ""), UNKNOWN_NAME)
    metric = Metric(full_name, known.unit, known.better, known.kind)
    return NamedMetric(metric, known.why_ungated, known.note)


def _is_forced(benchmark: BenchmarkRun) -> bool:
    """Return whether reference tokens are fed, as tt-metal recognises it."""
    names = {measurement.name for measurement in benchmark.measurements}
    return not names.isdisjoint({"top1_token_accuracy", "top5_token_accuracy"})


def is_volatile(name: str, value: object) -> bool:
    """Return whether a member changes with every run.

    >>> is_volatile("run_id", 17), is_volatile("started", "2026-11-02T09:00:00"), is_volatile(
    ...     "model_id", "llama"), is_volatile("cache", "/home/me/.cache")
    (True, True, False, True)
    """
    if not isinstance(value, bool) and _VOLATILE_NAME.fullmatch(name.lower()):
        return True
    return isinstance(value, str) and _VOLATILE_VALUE.fullmatch(value.strip()) is not None


#: When, where, by whom and from which sources something was run; ids of single runs. Words that
#: settings end with too, as in sample_on_host and tokens_per_user, have to stand alone.
_VOLATILE_NAME: Final = re.compile(
    r"(?:.*_)?(?:timestamp|ts|date|datetime|start_time|end_time|hostname|uuid|username|commit"
    r"|commit_hash|sha|git_branch"
    r"|(?:run|job|pipeline|session|build|request|container|workflow)_(?:id|number|url|link))"
    r"|host|host_name|ip|ip_address|device_ip|pid|port|user|user_name|branch"
)
#: A time, a UUID, a path of one machine, or an address.
_VOLATILE_VALUE: Final = re.compile(
    r"20\d\d-?[01]\d-?[0-3]\d(?:[T _-]\d\d.*)?"
    r"|[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
    r"|(?:~|[A-Za-z]:)?[/\\].+|[a-z]+://.+",
    re.DOTALL,
)


# A benchmark's results as a run of the gate: test ids, hardware, settings and metrics.

T = TypeVar("T")

_MESH: Final = re.compile(r"[1-9]\d{0,3}(?:x[1-9]\d{0,3})*")
#: Prefix of results in a configuration of tt-xla: counts of compiled ops.
_RESULTS: Final = "ttnn_"


def read_benchmark_run(file: Path, hardware: Hardware | None = None) -> Run:
    benchmarks = read_benchmarks(file)
    try:
        declared = project_settings().measurements
        tests = [_observation(benchmark, hardware, declared) for benchmark in benchmarks]
    except DecodeError as cause:
        raise InputError(file, str(cause)) from cause
    first, by_id = benchmarks[0], dict[str, Observation]()
    _add(by_id, tests, file)
    return Run(
        hardware=tests[0].hardware,
        tests={name: JudgedTest(test) for name, test in by_id.items()},
        environment=Environment(
            started_at=first.run_start_ts,
            commit=first.git_commit_hash,
            runner=first.device_hostname,
        ),
        id=f"benchmark-{_digest(file)}",
    )


def read_comparable_run(file: Path, hardware: Hardware | None = None) -> Run:
    """Read benchmark results as a run to compare with baselines."""
    run = read_benchmark_run(file, hardware)
    if all(judged.observation.hardware for judged in run.tests.values()):
        return run
    problem = "it does not say on which board it was measured"
    remedy = f"ttnn-perf gate {file} --hardware ARCH-BOARD[-MESH]"
    raise InputError(file, f"{problem}; say it: {remedy}")


def joined_run(files: Sequence[Path], hardware: Hardware | None = None) -> Run:
    """Read several files as one run; repeated tests add samples."""
    runs = [read_comparable_run(file, hardware) for file in files]
    tests: dict[str, Observation] = {}
    for file, run in zip(files, runs, strict=True):
        _add(tests, (judged.observation for judged in run.tests.values()), file)
    if len(runs) == 1:
        return runs[0]
    digest = blake2b(" ".join(run.id or "" for run in runs).encode(), digest_size=6).hexdigest()
    return replace(
        runs[0],
        tests={name: JudgedTest(test) for name, test in tests.items()},
        id=f"benchmark-{digest}",
    )


def _digest(file: Path) -> str:
    with reading(file), open_file(file) as stream:
        return blake2b(stream.read(), digest_size=6).hexdigest()


def test_of(benchmark: BenchmarkRun) -> str:
    """Return the test id: model, run type, batch and lengths.

    The name of a model may have a folder, as those of Hugging Face do.
    """
    ours = _ours(benchmark)
    if isinstance(ours.get("test"), str):
        return str(ours["test"])
    concurrency = (benchmark.config_params or {}).get("concurrency")
    parts = {
        "batch": benchmark.batch_size,
        "concurrency": concurrency if isinstance(concurrency, int) else None,
        "isl": benchmark.input_sequence_length,
        "osl": benchmark.output_sequence_length,
    }
    known = ",".join(f"{name}={value}" for name, value in parts.items() if value is not None)
    # A demo has the same type and sizes whether its speed or its accuracy is measured.
    kind = f"{benchmark.run_type}_accuracy" if _is_forced(benchmark) else benchmark.run_type
    test = f"benchmark:{benchmark.ml_model_name}::{kind}"
    return f"{test}[{known}]" if known else test


def system_in(benchmark: BenchmarkRun) -> tuple[str | None, str | None, str | None]:
    """Return architecture, board and mesh, from any producer's fields."""
    info, config = benchmark.device_info or {}, benchmark.config_params or {}
    named = [
        *(info.get(name) for name in ("board", "device_type", "device_name", "card_type", "arch")),
        *(config.get(name) for name in ("device_name", "device", "sku")),
    ]
    systems = [system for name in named if isinstance(name, str) and (system := system_of(name))]
    systems.sort(key=lambda system: system[1] is None)
    return *(systems[0] if systems else (None, None)), _mesh(info)


def _mesh(info: Mapping[str, Any]) -> str | None:
    """Return the mesh shape; 1x1 for a single device."""
    shape = info.get("mesh_shape") or info.get("mesh")
    if isinstance(shape, list):
        shape = "x".join(map(str, shape))
    if isinstance(shape, str) and _MESH.fullmatch(shape):
        return shape
    return "1x1" if info.get("device_count") == 1 else None


def _ours(benchmark: BenchmarkRun) -> Mapping[str, Any]:
    found = (benchmark.config_params or {}).get(OURS)
    return found if isinstance(found, dict) else {}


def _observation(
    benchmark: BenchmarkRun,
    hardware: Hardware | None,
    declared: Mapping[str, Declared],
) -> Observation:
    ours = _ours(benchmark)
    facts = {
        "model": benchmark.ml_model_name,
        "batch": benchmark.batch_size,
        "input_sequence_length": benchmark.input_sequence_length,
        "output_sequence_length": benchmark.output_sequence_length,
        "num_layers": benchmark.num_layers,
        "precision": benchmark.precision,
        "image_dimension": benchmark.image_dimension,
        "dataset": benchmark.dataset_name,
    }
    config = {
        name: value
        for name, value in (benchmark.config_params or {}).items()
        if name != OURS and _is_scalar(value)
    }
    environment = {
        name: value
        for name, value in config.items()
        if name.startswith(_RESULTS) or is_volatile(name, value)
    }
    settings = {name: value for name, value in config.items() if name not in environment}
    for name, values in (
        ("power_w", [m.device_power for m in benchmark.measurements]),
        ("temperature_c", [m.device_temperature for m in benchmark.measurements]),
    ):
        known = [value for value in values if value is not None]
        environment |= {name: max(known)} if known else {}
    if hardware is None and ours.get("hardware"):
        hardware = _decoded(Hardware, ours["hardware"], "hardware")
    arch, board, mesh = system_in(benchmark)
    if hardware is None and arch is not None and board is not None:
        hardware = Hardware(arch, board, mesh)
    return Observation(
        test=test_of(benchmark),
        metrics={m.metric.name: m for m in metrics_of(benchmark, declared)},
        configuration=_scalars(ours.get("configuration", settings)),
        facts=_scalars(
            ours.get("facts", {name: fact for name, fact in facts.items() if fact is not None})
        ),
        hardware=hardware,
        environment=environment,
    )


def metrics_of(
    benchmark: BenchmarkRun, declared: Mapping[str, Declared] = NOTHING_DECLARED
) -> Iterable[MetricObservation]:
    """Yield the metrics; iterations are samples."""
    groups: dict[tuple[str, str], list[Measurement]] = defaultdict(list)
    for measurement in benchmark.measurements:
        groups[measurement.step_name, measurement.name].append(measurement)
    defined = _ours(benchmark).get("metrics")
    defined = defined if isinstance(defined, dict) else {}
    for (step, name), measured in groups.items():
        ordered = sorted(measured, key=lambda m: m.iteration)
        targets = [m.target for m in ordered if m.target is not None]
        own = metric_in("" if step == WHOLE_RUN else step, name)
        limits, note = Limits(), None
        if own in defined:
            metric, limits, why = _own_metric(defined[own], own)
        else:
            metric, why, note = metric_of_measurement(name, step, declared)
            if metric.kind is not Kind.ACCURACY and _is_forced(benchmark):
                why = why or _FORCED
        yield MetricObservation(
            metric,
            tuple(m.value for m in ordered),
            limits=replace(limits, target=targets[-1] if targets else None),
            gated=why is None,
            note=note,
            why_ungated=why,
        )


def _own_metric(definition: object, name: str) -> tuple[Metric, Limits, str | None]:
    metric = _decoded(Metric, definition, "metrics", name, key=name)
    limits = _decoded(Limits, definition, "metrics", name)
    why = definition.get("why_ungated") if isinstance(definition, dict) else None
    return metric, limits, why if isinstance(why, str) else None


def _decoded(kind: type[T], raw: object, *place: str, key: str = "") -> T:
    """Decode one of our additions; an error has the whole path."""
    try:
        return decode(kind, raw, key=key)
    except DecodeError as error:
        for step in reversed(("config_params", OURS, *place)):
            error = error.below(step)
        raise error from None


def _add(joined: dict[str, Observation], tests: Iterable[Observation], file: Path) -> None:
    """Add tests by id; repeated ones add samples."""
    for test in tests:
        known = joined.get(test.test)
        joined[test.test] = test if known is None else _with_samples(known, test, file)


def _with_samples(first: Observation, other: Observation, file: Path) -> Observation:
    difference = first_difference(first.setting, other.setting)
    if difference is not None or first.hardware != other.hardware:
        name, before, after = difference or ("hardware", first.hardware, other.hardware)
        problem = f"two results of {first.test} differ in {name}: {before} and {after}"
        raise InputError(file, f"{problem}; judge them one by one, in files of their own")
    metrics = dict(first.metrics)
    for name, observed in other.metrics.items():
        known = metrics.get(name, observed)
        metrics[name] = replace(
            observed,
            samples=(*(known.samples if name in metrics else ()), *observed.samples),
            gated=known.gated and observed.gated,
            why_ungated=known.why_ungated or observed.why_ungated,
        )
    return replace(first, metrics=metrics)


def _is_scalar(value: object) -> bool:
    if isinstance(value, (int, float)):
        return -LARGEST <= value <= LARGEST
    return isinstance(value, str)


def _scalars(values: object) -> Mapping[str, Scalar]:
    members = values if isinstance(values, dict) else {}
    return {name: value for name, value in members.items() if value is None or _is_scalar(value)}


_LARGEST_FILE: Final = 2**26
#: How run records begin, which may hold any name among their facts.
_RUN_RECORD: Final = re.compile(r'\s*\{\s*"format"')
#: Members of which a format has all.
_FORMATS: Final = (
    ('"ml_model_name"', '"run_type"'),
    ('"measurement_name"', '"measurements"', '"model"'),
    ('"request_throughput"', '"completed"', '"duration"'),
    ('"benchmarks"', '"model_id"'),
    ('"benchmarks"', '"num_requests"', '"model"'),
    ('"benchmarks: "', '"num_requests"', '"model"'),
)


def is_benchmark_json(head: str) -> bool:
    """Return whether a text begins as the results of a benchmark do."""
    start = head.lstrip("\ufeff \t\r\n")
    if not start.startswith(("{", "[")) or _RUN_RECORD.match(start):
        return False
    return any(all(member in head for member in members) for members in _FORMATS)


def read_benchmarks(file: Path) -> tuple[BenchmarkRun, ...]:
    text = read_text(file, most_bytes=_LARGEST_FILE)
    if "\n{" in text:  # one run per line: within a run, nothing stands at the start of a line
        text = "[" + text.strip().replace("\n{", ",\n{") + "]"
    runs = parse_json(text, lambda document: tuple(_runs(Value(document))), file=file)
    if not runs:
        raise InputError(file, "expected the results of a benchmark, found none")
    return runs


def _runs(value: Value) -> Iterator[BenchmarkRun]:
    if isinstance(value.raw, list):
        for item in value.array():
            yield from _runs(item)
        return
    members = value.members()
    if "ml_model_name" in members or "measurements" in members:
        yield _benchmark(value)
    elif "request_throughput" in members:
        yield _serving(value)
    elif isinstance(members.get("benchmarks"), list):
        yield from map(_serving, value.field("benchmarks").array())
        evaluations = value.optional("evals")
        if evaluations is not None:
            yield from map(_evaluation, evaluations.array())
    else:
        name = "benchmarks: " if "benchmarks: " in members else "benchmarks"
        yield _media(value, value.field(name))


def _benchmark(value: Value) -> BenchmarkRun:
    """Read a result of tt-metal or tt-xla; -1 and "" are unknown."""
    of_tt_xla = "ml_model_name" not in value.members()
    config = dict(_typed(value, "config" if of_tt_xla else "config_params", dict) or {})
    measured = [(item, item.members()) for item in value.field("measurements").array()]
    if of_tt_xla:
        # The total time is of so many samples: their number is a setting.
        for _, members in measured:
            if members.get("measurement_name") == "total_samples":
                config["total_samples"] = members.get("value")
    counts: dict[str, Any] = {name: _count(value, name, at_least=1) for name in _COUNTS}
    texts: dict[str, Any] = {name: _text(value, name) for name in _TEXTS}
    return BenchmarkRun(
        run_end_ts=None,
        run_type=_text(value, "run_type") or "benchmark",
        ml_model_name=_name(value.field("model" if of_tt_xla else "ml_model_name")),
        measurements=tuple(_measurement(item, of_tt_xla=of_tt_xla) for item, _ in measured),
        device_info=_typed(value, "device_info", dict) or _device(value, "device_info"),
        config_params=config,
        **texts,
        **counts,
    )


_TEXTS: Final = (
    "run_start_ts", "git_commit_hash", "device_hostname", "precision", "dataset_name",
    "image_dimension",
)  # fmt: skip
_COUNTS: Final = ("num_layers", "batch_size", "input_sequence_length", "output_sequence_length")


def _measurement(item: Value, *, of_tt_xla: bool) -> Measurement:
    return replace(
        _measured(
            _name(item.field("measurement_name" if of_tt_xla else "name")), _number(item, "value")
        ),
        iteration=_count(item, "iteration") or 0,
        # The step of tt-xla is the model's name: it distinguishes nothing.
        step_name=("" if of_tt_xla else _text(item, "step_name")) or "",
        target=_positive(item, "target"),
        device_power=_positive(item, "device_power"),
        device_temperature=_positive(item, "device_temperature"),
    )


#: Settings of a server's benchmark.
_SERVING_SETTINGS: Final = (
    "num_prompts", "num_requests", "request_rate", "burstiness", "images_per_prompt",
    "image_height", "image_width", "backend", "endpoint_type", "task_type", "num_inference_steps",
    "streaming_enabled", "preprocessing_enabled",
)  # fmt: skip
_RENAMED_SETTINGS: Final = {"num_requests": "num_prompts", "endpoint_type": "backend"}
_CONCURRENCY: Final = ("max_concurrency", "max_con", "concurrency")
#: Numbers that are settings, or stand in other fields.
_NOT_MEASURED: Final = frozenset({
    *_SERVING_SETTINGS, *_CONCURRENCY, "input_sequence_length", "output_sequence_length",
    "random_input_len", "random_output_len", "isl", "timestamp", "best_of",
})  # fmt: skip


def _of_server(
    value: Value, run_type: str, measurements: Iterable[Measurement], **fields: Any
) -> BenchmarkRun:
    named = [name for name in ("model_id", "model_name") if _text(value, name)]
    return BenchmarkRun(
        None,
        None,
        run_type=run_type,
        ml_model_name=_name(value.field(named[0] if named else "model")),
        measurements=tuple(measurements),
        device_info=_device(value),
        **fields,
    )


def _serving(value: Value) -> BenchmarkRun:
    """Read a vLLM ``benchmark_serving`` result, or a row of a server's report."""
    return _of_server(
        value,
        "serving",
        _numbers_of(value),
        config_params=_settings(value),
        input_sequence_length=_first(value, "input_sequence_length", "random_input_len", "isl"),
        output_sequence_length=_first(value, "output_sequence_length", "random_output_len"),
    )


def _evaluation(value: Value) -> BenchmarkRun:
    """Read one evaluation of an inference server's report."""
    names = ("score", "published_score", "gpu_reference_score")
    scores = (_measured(name, _number(value, name)) for name in names if name in value.members())
    return _of_server(value, f"eval_{_text(value, 'task_name') or 'task'}", scores)


def _media(value: Value, numbers: Value) -> BenchmarkRun:
    """Read a media benchmark of a server; ``ttft`` is in seconds."""
    measured = (
        replace(item, name="ttft_s") if item.name == "ttft" else item
        for item in _numbers_of(numbers)
    )
    return _of_server(
        value,
        f"serving_{_text(value, 'task_type') or 'media'}",
        measured,
        config_params={**_settings(value), **_settings(numbers)},
        input_sequence_length=_first(numbers, "isl"),
    )


def _numbers_of(value: Value) -> Iterator[Measurement]:
    """Yield all numbers; NaN for known names without one."""
    for name, raw in value.members().items():
        if name in _NOT_MEASURED or isinstance(raw, (list, dict)) or raw == "n/a":
            continue
        is_number = isinstance(raw, (int, float)) and not isinstance(raw, bool)
        # Goodput is null unless requested.
        missing = known_measurement(name) is not None and not name.startswith("request_goodput")
        if is_number or missing:
            yield _measured(name, _number(value, name))


def _measured(name: str, value: float) -> Measurement:
    return Measurement(None, None, 0, "", None, name, value)


def _device(value: Value, member: str = "device") -> dict[str, Any] | None:
    name = _text(value, member)
    return None if name is None else {"device_name": name}


def _settings(value: Value) -> dict[str, Any]:
    members = value.members()
    settings = {
        _RENAMED_SETTINGS.get(name, name): members[name]
        for name in _SERVING_SETTINGS
        if isinstance(members.get(name), (str, int, float))
    }
    concurrency = _first(value, *_CONCURRENCY)
    return settings if concurrency is None else {**settings, "concurrency": concurrency}


# Producers write what they have: a field that is not as it should be is one that is not known. Only
# numbers that are measured are missed.


def _name(value: Value) -> str:
    """Read a name without null characters: it becomes a test id."""
    name = value.string()
    if not name.strip() or "\0" in name:
        raise value.refusal("a name")
    return name


def _text(value: Value, name: str) -> str | None:
    raw = value.members().get(name)
    return raw if isinstance(raw, str) and raw.strip() and "\0" not in raw else None


def _count(value: Value, name: str, *, at_least: int = 0) -> int | None:
    raw = value.members().get(name)
    if isinstance(raw, bool) or not isinstance(raw, (int, float)):
        return None
    return int(raw) if at_least <= raw <= LARGEST_COUNT and int(raw) == raw else None


def _first(value: Value, *names: str) -> int | None:
    found = (_count(value, name, at_least=1) for name in names)
    return next((count for count in found if count is not None), None)


def _typed(value: Value, name: str, kind: type[T]) -> T | None:
    raw = value.members().get(name)
    return raw if isinstance(raw, kind) else None


def _number(value: Value, name: str) -> float:
    raw = value.members().get(name)
    if isinstance(raw, bool) or not isinstance(raw, (int, float)):
        return math.nan
    return raw if -LARGEST <= raw <= LARGEST else math.nan


def _positive(value: Value, name: str) -> float | None:
    """Read a number above 0; -1 means unset."""
    found = _number(value, name)
    return found if found > 0 else None
