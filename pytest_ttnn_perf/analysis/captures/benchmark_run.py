"""A benchmark's results as a run of the gate: test ids, hardware, settings and metrics."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf._base.errors import DecodeError, InputError
from pytest_ttnn_perf._base.files import open_file, reading
from pytest_ttnn_perf.analysis.captures.benchmark_gating import (
    is_forced,
    is_volatile,
    why_ungated,
)
from pytest_ttnn_perf.analysis.captures.benchmark_json import read_benchmarks
from pytest_ttnn_perf.records.benchmark import OURS, WHOLE_RUN
from pytest_ttnn_perf.records.hardware import Configuration, Environment, Hardware, Scalar
from pytest_ttnn_perf.records.json import decode
from pytest_ttnn_perf.records.json_value import LARGEST
from pytest_ttnn_perf.records.known_measurements import metric_of_measurement
from pytest_ttnn_perf.records.metric import Metric, metric_in
from pytest_ttnn_perf.records.observation import (
    JudgedTest,
    Limits,
    MetricObservation,
    Observation,
    Run,
)
from pytest_ttnn_perf.records.systems import system_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from pytest_ttnn_perf.records.benchmark import BenchmarkRun, Measurement

T = TypeVar("T")

_MESH: Final = re.compile(r"[1-9]\d{0,3}(?:x[1-9]\d{0,3})*")
#: What a configuration of tt-xla begins with that is a result: counts of what was compiled.
_RESULTS: Final = "ttnn_"


@dataclass(frozen=True, slots=True)
class Told:
    """What a benchmark says of the hardware; None for what it does not."""

    arch: str | None = None
    board: str | None = None
    mesh: str | None = None

    def hardware(self) -> Hardware | None:
        """Return the hardware, if it is told well enough to file a baseline under it."""
        if self.arch is None or self.board is None:
            return None
        return Hardware(self.arch, self.board, self.mesh)


def read_benchmark_run(file: Path, hardware: Hardware | None = None) -> Run:
    """Read the results of benchmarks as a run: each is a test, on ``hardware`` if that is given.

    Raises:
        InputError: it is damaged, or has two results of one test that differ in their settings.
    """
    benchmarks = read_benchmarks(file)
    try:
        tests = [_observation(benchmark, hardware) for benchmark in benchmarks]
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
    """Read the results of benchmarks as a run that can be compared with baselines.

    Raises:
        InputError: as ``read_benchmark_run``, or it does not say what hardware it is of.
    """
    run = read_benchmark_run(file, hardware)
    if all(judged.observation.hardware for judged in run.tests.values()):
        return run
    problem = "it does not say on which board it was measured"
    remedy = f"ttnn-perf import {file} --hardware ARCH-BOARD[-MESH] --json RUN.json"
    raise InputError(file, f"{problem}; say it: {remedy}")


def joined_run(files: Sequence[Path], hardware: Hardware | None = None) -> Run:
    """Read the results of several files as one run: what they have of one test are its samples.

    Raises:
        InputError: as ``read_comparable_run``.
    """
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
    """Return the id that a benchmark is judged under: model, run type, batch and lengths.

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
    kind = f"{benchmark.run_type}_accuracy" if is_forced(benchmark) else benchmark.run_type
    test = f"benchmark:{benchmark.ml_model_name}::{kind}"
    return f"{test}[{known}]" if known else test


def told_hardware(benchmark: BenchmarkRun) -> Told:
    """Return what a benchmark says of its hardware, in any of the fields that producers use."""
    info, config = benchmark.device_info or {}, benchmark.config_params or {}
    named = [
        *(info.get(name) for name in ("board", "device_type", "device_name", "card_type", "arch")),
        *(config.get(name) for name in ("device_name", "device", "sku")),
    ]
    systems = [system for name in named if isinstance(name, str) and (system := system_of(name))]
    boards = [system for system in systems if system.board is not None]
    system = next(iter(boards or systems), None)
    if system is None:
        return Told(mesh=_mesh(info))
    return Told(system.arch, system.board, _mesh(info))


def _mesh(info: Mapping[str, Any]) -> str | None:
    """Return the shape of the mesh; one device is a mesh of one, several have a shape."""
    shape = info.get("mesh_shape") or info.get("mesh")
    if isinstance(shape, list):
        shape = "x".join(map(str, shape))
    if isinstance(shape, str) and _MESH.fullmatch(shape):
        return shape
    return "1x1" if info.get("device_count") == 1 else None


def facts_of(benchmark: BenchmarkRun) -> Mapping[str, Scalar]:
    """Return what a benchmark says of the model and its inputs."""
    facts: dict[str, Scalar] = {
        "model": benchmark.ml_model_name,
        "batch": benchmark.batch_size,
        "input_sequence_length": benchmark.input_sequence_length,
        "output_sequence_length": benchmark.output_sequence_length,
        "num_layers": benchmark.num_layers,
        "precision": benchmark.precision,
        "image_dimension": benchmark.image_dimension,
        "dataset": benchmark.dataset_name,
    }
    return {name: fact for name, fact in facts.items() if fact is not None}


def _ours(benchmark: BenchmarkRun) -> Mapping[str, Any]:
    """Return what we wrote beside the fields of the schema; nothing of other producers."""
    found = (benchmark.config_params or {}).get(OURS)
    return found if isinstance(found, dict) else {}


def _observation(benchmark: BenchmarkRun, hardware: Hardware | None) -> Observation:
    ours = _ours(benchmark)
    own_hardware = (
        _decoded(Hardware, ours["hardware"], "hardware") if ours.get("hardware") else None
    )
    config = {
        name: value
        for name, value in (benchmark.config_params or {}).items()
        if name != OURS and _is_scalar(value)
    }
    beside = {
        name: value
        for name, value in config.items()
        if name.startswith(_RESULTS) or is_volatile(name, value)
    }
    settings = {name: value for name, value in config.items() if name not in beside}
    return Observation(
        test=test_of(benchmark),
        metrics={m.metric.name: m for m in metrics_of(benchmark)},
        configuration=Configuration(_scalars(ours.get("configuration", settings))),
        facts=_scalars(ours.get("facts", facts_of(benchmark))),
        hardware=hardware or own_hardware or told_hardware(benchmark).hardware(),
        environment={**beside, **environment_of(benchmark)},
    )


def environment_of(benchmark: BenchmarkRun) -> Mapping[str, Scalar]:
    """Return what was true of the device meanwhile: the highest power and temperature."""
    measured = benchmark.measurements
    told = {
        "power_w": [m.device_power for m in measured if m.device_power is not None],
        "temperature_c": [
            m.device_temperature for m in measured if m.device_temperature is not None
        ],
    }
    return {name: max(values) for name, values in told.items() if values}


def metrics_of(benchmark: BenchmarkRun) -> Iterable[MetricObservation]:
    """Yield the metrics: what was measured in several iterations has a sample of each."""
    groups: dict[tuple[str, str], list[Measurement]] = defaultdict(list)
    for measurement in benchmark.measurements:
        groups[measurement.step_name, measurement.name].append(measurement)
    defined = _ours(benchmark).get("metrics")
    defined = defined if isinstance(defined, dict) else {}
    for (step, name), measured in groups.items():
        ordered = sorted(measured, key=lambda m: m.iteration)
        targets = [m.target for m in ordered if m.target is not None]
        own = metric_in("" if step == WHOLE_RUN else step, name)
        limits = Limits()
        if own in defined:
            metric, limits, why = _own_metric(defined[own], own)
        else:
            metric, why = metric_of_measurement(name, step)
            why = why or why_ungated(benchmark, metric, name, step)
        yield MetricObservation(
            metric,
            tuple(m.value for m in ordered),
            limits=replace(limits, target=targets[-1] if targets else None),
            gated=why is None,
            why_ungated=why,
        )


def _own_metric(definition: object, name: str) -> tuple[Metric, Limits, str | None]:
    metric = _decoded(Metric, definition, "metrics", name, key=name)
    limits = _decoded(Limits, definition, "metrics", name)
    why = definition.get("why_ungated") if isinstance(definition, dict) else None
    return metric, limits, why if isinstance(why, str) else None


def _decoded(kind: type[T], raw: object, *place: str, key: str = "") -> T:
    """Decode what stands at a place among what we wrote; an error has the whole path."""
    try:
        return decode(kind, raw, key=key)
    except DecodeError as error:
        for step in reversed(("config_params", OURS, *place)):
            error = error.below(step)
        raise error from None


def _add(joined: dict[str, Observation], tests: Iterable[Observation], file: Path) -> None:
    """Add tests by their ids; one that was run several times gets all samples."""
    for test in tests:
        known = joined.get(test.test)
        joined[test.test] = test if known is None else _with_samples(known, test, file)


def _with_samples(first: Observation, other: Observation, file: Path) -> Observation:
    difference = first.setting.first_difference(other.setting)
    if difference is not None or first.hardware != other.hardware:
        name, before, after = difference or ("hardware", first.hardware, other.hardware)
        problem = f"two results of {first.test} differ in {name}: {before} and {after}"
        raise InputError(file, f"{problem}; judge them one by one, in files of their own")
    metrics = dict(first.metrics)
    for name, observed in other.metrics.items():
        known = metrics.get(name)
        metrics[name] = observed if known is None else _both(known, observed)
    return replace(first, metrics=metrics)


def _both(first: MetricObservation, other: MetricObservation) -> MetricObservation:
    """Return the samples of both; gated if both are."""
    return replace(
        other,
        samples=(*first.samples, *other.samples),
        gated=first.gated and other.gated,
        why_ungated=first.why_ungated or other.why_ungated,
    )


def _is_scalar(value: object) -> bool:
    if isinstance(value, (int, float)):
        return -LARGEST <= value <= LARGEST
    return isinstance(value, str)


def _scalars(values: object) -> Mapping[str, Scalar]:
    members = values if isinstance(values, dict) else {}
    return {name: value for name, value in members.items() if value is None or _is_scalar(value)}
