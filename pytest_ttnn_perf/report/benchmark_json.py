"""A run for dashboards: one ``CompleteBenchmarkRun`` of Tenstorrent for each test."""

from __future__ import annotations

import json
import os
import platform
import re
from datetime import datetime, timezone
from hashlib import blake2b
from math import prod
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from msgspec.structs import replace

from pytest_ttnn_perf.core.codec import encode
from pytest_ttnn_perf.core.files import write_text
from pytest_ttnn_perf.core.metric import split_metric
from pytest_ttnn_perf.core.observation import value_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pytest_ttnn_perf.core.hardware import Hardware, Scalar
    from pytest_ttnn_perf.core.observation import JudgedTest, MetricObservation, Run


#: The member of ``config_params`` that says what no field of the schema has room for.
OURS: Final = "ttnn_perf"
#: The step of a measurement that belongs to no step: the whole run.
WHOLE_RUN: Final = "run"


class Measurement(Struct, frozen=True):
    """One number of a benchmark; NaN for one that is not finite.

    Times are ISO 8601 with a time zone, power is in watts, temperature in degrees Celsius.
    """

    step_start_ts: str | None
    step_end_ts: str | None
    iteration: int
    step_name: str
    step_warm_up_num_iterations: int | None
    name: str
    value: float
    target: float | None = None
    device_power: float | None = None
    device_temperature: float | None = None


class BenchmarkRun(Struct, frozen=True):
    """One benchmark with the fields of the schema; None if unknown."""

    run_start_ts: str | None
    run_end_ts: str | None
    run_type: str
    ml_model_name: str
    measurements: tuple[Measurement, ...]
    git_repo_name: str | None = None
    git_commit_hash: str | None = None
    git_commit_ts: str | None = None
    git_branch_name: str | None = None
    github_pipeline_id: int | None = None
    github_pipeline_link: str | None = None
    github_job_id: int | None = None
    user_name: str | None = None
    docker_image: str | None = None
    device_hostname: str | None = None
    device_ip: str | None = None
    device_info: dict[str, Any] | None = None
    ml_model_type: str | None = None
    num_layers: int | None = None
    batch_size: int | None = None
    config_params: dict[str, Any] | None = None
    precision: str | None = None
    dataset_name: str | None = None
    profiler_name: str | None = None
    input_sequence_length: int | None = None
    output_sequence_length: int | None = None
    image_dimension: str | None = None
    perf_analysis: bool | None = None
    training: bool | None = None


#: The run type of a test that does not say another.
RUN_TYPE: Final = "ttnn_perf"
#: Repositories whose collector in tt-github-actions takes a file that ends with the job's id. It
#: stops at such a file of any other.
_COLLECTED: Final = frozenset({"tt-forge", "tt-forge-onnx", "tt-mlir", "tt-xla"})
#: Of a test that measures nothing, the time of its call alone is recorded.
_CALL_TIME: Final = "call_time"


def write_benchmarks(run: Run, folder: Path) -> None:
    """Write a file for each test that has ended with a number.

    Raises:
        WriteError: the folder or the disk refused.
    """
    origin = _origin(run, os.environ, now=datetime.now(timezone.utc))
    for test, judged in run.tests.items():
        observation = judged.observation
        if not observation.reached_end:
            continue
        benchmark = _benchmark(judged, observation.hardware or run.hardware, origin)
        if benchmark.measurements:
            text = json.dumps(_document(benchmark, observation.configuration)) + "\n"
            write_text(folder / _file_name(test, benchmark), text)


def _document(benchmark: BenchmarkRun, configuration: Mapping[str, Scalar]) -> dict[str, Any]:
    """Return the document, with the names that collectors of tt-github-actions read too."""
    document = encode(benchmark)
    for measurement in document["measurements"]:
        measurement["measurement_name"] = measurement["name"]
    return {
        **document,
        "model": benchmark.ml_model_name,
        "model_type": benchmark.ml_model_type,
        "config": dict(configuration),
        "project": _project(benchmark),
    }


def _project(benchmark: BenchmarkRun) -> str | None:
    return (benchmark.git_repo_name or "").rpartition("/")[2] or None


def _file_name(test: str, benchmark: BenchmarkRun) -> str:
    # Validators look for complete_run_*.json, collectors for the job's id behind the last "_".
    readable = re.sub(r"[^A-Za-z0-9]+", "-", test).strip("-")[:80]
    digest = blake2b(test.encode(errors="surrogatepass"), digest_size=3).hexdigest()
    moment = re.sub(r"[-:]|\.\d+", "", benchmark.run_start_ts or "").replace("+0000", "Z")
    collected = benchmark.github_job_id is not None and _project(benchmark) in _COLLECTED
    job = f"_{benchmark.github_job_id}" if collected else ""
    return f"complete_run_{readable}-{digest}_{moment}{job}.json"


def _benchmark(
    judged: JudgedTest, hardware: Hardware | None, origin: Mapping[str, Any]
) -> BenchmarkRun:
    observation = judged.observation
    known = {**observation.environment, **observation.setting}

    def text(*names: str) -> str | None:
        found = (known.get(name) for name in names)
        return next((value for value in found if isinstance(value, str) and value), None)

    def count(*names: str) -> int | None:
        found = (known.get(name) for name in names)
        return next((value for value in found if type(value) is int), None)

    info: dict[str, Any] | None = None
    if hardware is not None:
        info = {
            "arch": hardware.arch,
            "card_type": hardware.board,
            "device_name": text("device_name") or hardware.board,
            "simulated": hardware.simulated,
        }
        if hardware.mesh is not None:
            shape = [int(extent) for extent in re.findall(r"\d+", hardware.mesh)]
            info |= {"mesh_shape": shape, "device_count": prod(shape)}
    measured = {
        name: value
        for name, observed in observation.metrics.items()
        if (value := _value_of(judged, observed)) is not None
    }
    if measured.keys() == {_CALL_TIME} and not observation.metrics[_CALL_TIME].gated:
        measured = {}
    return BenchmarkRun(
        run_type=text("run_type") or RUN_TYPE,
        ml_model_name=text("model", "model_name", "ml_model_name") or observation.test,
        measurements=tuple(
            _measurement(observation.metrics[name], value, known, origin)
            for name, value in measured.items()
        ),
        device_info=info,
        ml_model_type=text("model_type", "ml_model_type") or observation.model_kind,
        num_layers=count("num_layers", "layers"),
        batch_size=count("batch", "batch_size"),
        config_params={
            **observation.configuration,
            OURS: _own_members(judged, hardware, frozenset(measured)),
        },
        precision=text("precision"),
        dataset_name=text("dataset", "dataset_name"),
        input_sequence_length=count("input_sequence_length", "isl", "sequence_length", "seq_len"),
        output_sequence_length=count("output_sequence_length", "osl"),
        image_dimension=text("image_dimension"),
        **origin,
    )


def _value_of(judged: JudgedTest, observed: MetricObservation) -> float | None:
    own = (each for each in judged.verdicts if each.metric.name == observed.metric.name)
    return value_of(observed, next(own, None))


def _measurement(
    observed: MetricObservation,
    value: float,
    known: Mapping[str, Scalar],
    origin: Mapping[str, Any],
) -> Measurement:
    name, step = split_metric(observed.metric.name)
    if step == WHOLE_RUN:  # a region that happens to have this name is not the whole run
        name, step = observed.metric.name, ""

    def number(fact: str) -> float | None:
        value = known.get(fact)
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        return float(value) if is_number and value is not None else None

    return Measurement(
        origin["run_start_ts"],  # when a metric was measured is not recorded
        origin["run_end_ts"],
        iteration=0,
        step_name=step or WHOLE_RUN,
        step_warm_up_num_iterations=len(observed.warmup) or None,
        name=name,
        value=value,
        target=observed.limits.target,
        device_power=number("power_w"),
        device_temperature=number("temperature_c"),
    )


def _own_members(
    judged: JudgedTest, hardware: Hardware | None, measured: frozenset[str]
) -> dict[str, Any]:
    """Return members beyond the schema, for judging the file."""
    observation = judged.observation
    outcomes = {verdict.metric.name: verdict.outcome.value for verdict in judged.verdicts}
    return {
        "format": 1,
        "test": observation.test,
        "hardware": None if hardware is None else encode(hardware),
        "facts": dict(observation.facts),
        "configuration": dict(observation.configuration),
        "metrics": {
            name: {
                **encode(observed.metric),
                # The target has a field of its own.
                **encode(replace(observed.limits, target=None)),
                "outcome": outcomes.get(name),
                "why_ungated": None if observed.gated else observed.why_ungated or "recorded only",
            }
            for name, observed in observation.metrics.items()
            if name in measured
        },
        "without_value": sorted(observation.metrics.keys() - measured),
    }


def _origin(run: Run, variables: Mapping[str, str], *, now: datetime) -> dict[str, Any]:
    ended = now.isoformat(timespec="seconds")
    repository, pipeline = variables.get("GITHUB_REPOSITORY"), variables.get("GITHUB_RUN_ID")
    server, branch = variables.get("GITHUB_SERVER_URL"), variables.get("GITHUB_HEAD_REF")
    actor = variables.get("GITHUB_TRIGGERING_ACTOR") or variables.get("GITHUB_ACTOR")
    linked = server and repository and pipeline
    return {
        "run_start_ts": _utc(run.environment.started_at) or ended,
        "run_end_ts": ended,
        "device_hostname": variables.get("RUNNER_NAME") or platform.node(),
        "git_repo_name": repository or None,
        "git_commit_hash": run.environment.commit or variables.get("GITHUB_SHA") or None,
        "git_commit_ts": _utc(run.environment.committed_at),
        "git_branch_name": branch or variables.get("GITHUB_REF_NAME") or run.environment.branch,
        "github_pipeline_id": _id(pipeline),
        "github_pipeline_link": f"{server}/{repository}/actions/runs/{pipeline}"
        if linked
        else None,
        # GitHub does not tell a job its id: a step before has to ask for it.
        "github_job_id": _id(variables.get("GITHUB_JOB_ID")),
        "user_name": actor or None,
    }


def _id(text: str | None) -> int | None:
    return int(text) if text is not None and text.isascii() and text.isdigit() else None


def _utc(text: str | None) -> str | None:
    try:
        moment = datetime.fromisoformat((text or "").replace("Z", "+00:00"))
    except ValueError:
        return None
    if moment.tzinfo is None:
        return None
    return moment.astimezone(timezone.utc).isoformat(timespec="seconds")
