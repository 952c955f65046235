"""Writes a run for dashboards: where it comes from, and one file for each test."""

from __future__ import annotations

import json
import os
import platform
import re
from datetime import datetime, timezone
from hashlib import blake2b
from math import isfinite, prod
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from pytest_ttnn_perf.core.codec import encode
from pytest_ttnn_perf.core.files import write_text
from pytest_ttnn_perf.core.metric import split_metric
from pytest_ttnn_perf.gate.judge import representative

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from pytest_ttnn_perf.core.hardware import Hardware, Scalar
    from pytest_ttnn_perf.core.observation import JudgedTest, MetricObservation, Run


# One run of a benchmark as dashboards take it: Tenstorrent's ``CompleteBenchmarkRun``.

#: The member of ``config_params`` that says what no field of the schema has room for.
OURS: Final = "ttnn_perf"
#: The step of a measurement that belongs to no step: the whole run.
WHOLE_RUN: Final = "run"


class Measurement(Struct, frozen=True):
    """One number of a benchmark. NaN stands for a value that is no finite number.

    Times are ISO 8601 with a time zone. ``device_power`` is in watts, ``device_temperature`` in
    degrees Celsius.
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
    """What was benchmarked, on what, and the numbers; None for what is not known.

    ``concurrency`` is of a server's benchmark, and not part of the schema.
    """

    # In the order of the schema, with its names.
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


# A run as dashboards take it: one ``CompleteBenchmarkRun`` for each test.

#: What runs of this plugin are called.
RUN_TYPE: Final = "ttnn_perf"
#: How facts and settings may be called that the schema has a field for.
_MODEL: Final = ("model", "model_name", "ml_model_name")
_BATCH: Final = ("batch", "batch_size")
_INPUT: Final = ("input_sequence_length", "isl", "sequence_length", "seq_len")
_OUTPUT: Final = ("output_sequence_length", "osl")


class Origin(Struct, frozen=True):
    """Where a run comes from; None for what is not known. Names are those of the schema."""

    run_start_ts: str
    run_end_ts: str
    device_hostname: str
    git_repo_name: str | None = None
    git_commit_hash: str | None = None
    git_commit_ts: str | None = None
    git_branch_name: str | None = None
    github_pipeline_id: int | None = None
    github_pipeline_link: str | None = None
    github_job_id: int | None = None
    user_name: str | None = None


class BenchmarkFile(NamedTuple):
    """The file of one test."""

    name: str
    text: str


def benchmark_files(run: Run, origin: Origin) -> Iterator[BenchmarkFile]:
    """Yield the files of a run: of tests that reached their end, and have a number."""
    for test, judged in run.tests.items():
        observation = judged.observation
        if observation.raised is not None or observation.lost is not None:
            continue
        benchmark = benchmark_of(judged, observation.hardware or run.hardware, origin)
        if benchmark.measurements:
            yield BenchmarkFile(_file_name(test, origin), json.dumps(encode(benchmark)) + "\n")


def _file_name(test: str, origin: Origin) -> str:
    """Return a name that ends with the id of the job, if that is known.

    Validators look for ``complete_run_*.json``, collectors for the job's id behind the last ``_``.
    """
    readable = re.sub(r"[^A-Za-z0-9]+", "-", test).strip("-")[:80]
    digest = blake2b(test.encode(errors="surrogatepass"), digest_size=3).hexdigest()
    moment = re.sub(r"[-:]|\.\d+", "", origin.run_start_ts).replace("+0000", "Z")
    job = "" if origin.github_job_id is None else f"_{origin.github_job_id}"
    return f"complete_run_{readable}-{digest}_{moment}{job}.json"


def benchmark_of(judged: JudgedTest, hardware: Hardware | None, origin: Origin) -> BenchmarkRun:
    """Return what one test measured. What is not known is None: nothing is made up."""
    observation = judged.observation
    known = {**observation.environment, **observation.setting.values}
    measured = {
        name: value
        for name, observed in observation.metrics.items()
        if (value := _value_of(judged, observed)) is not None
    }
    return BenchmarkRun(
        run_type=RUN_TYPE,
        ml_model_name=_text(known, *_MODEL) or observation.test,
        measurements=tuple(
            _measurement(observation.metrics[name], value, known, origin)
            for name, value in measured.items()
        ),
        device_info=_device_info(hardware),
        ml_model_type=_text(known, "model_type", "ml_model_type") or observation.model_kind,
        num_layers=_count(known, "num_layers", "layers"),
        batch_size=_count(known, *_BATCH),
        config_params={
            **observation.configuration.values,
            OURS: _beside(judged, hardware, frozenset(measured)),
        },
        precision=_text(known, "precision"),
        dataset_name=_text(known, "dataset", "dataset_name"),
        input_sequence_length=_count(known, *_INPUT),
        output_sequence_length=_count(known, *_OUTPUT),
        image_dimension=_text(known, "image_dimension"),
        **{name: getattr(origin, name) for name in Origin.__struct_fields__},
    )


def _value_of(judged: JudgedTest, observed: MetricObservation) -> float | None:
    """Return the number that was judged, or stands for the samples; None if one is not finite."""
    for verdict in judged.verdicts:
        if verdict.metric.name == observed.metric.name and verdict.observed is not None:
            return verdict.observed
    samples = observed.samples
    if not samples or not all(map(isfinite, samples)):
        return None
    return representative(observed.metric, samples)


def _measurement(
    observed: MetricObservation, value: float, known: Mapping[str, Scalar], origin: Origin
) -> Measurement:
    # When a metric was measured is not recorded: in the time of the run.
    name, step = split_metric(observed.metric.name)
    if step == WHOLE_RUN:  # a region that happens to have this name is not the whole run
        name, step = observed.metric.name, ""
    return Measurement(
        origin.run_start_ts,
        origin.run_end_ts,
        iteration=0,
        step_name=step or WHOLE_RUN,
        step_warm_up_num_iterations=len(observed.warmup) or None,
        name=name,
        value=value,
        target=observed.limits.target,
        device_power=_number(known, "power_w"),
        device_temperature=_number(known, "temperature_c"),
    )


def _beside(
    judged: JudgedTest, hardware: Hardware | None, measured: frozenset[str]
) -> dict[str, Any]:
    """Return what the schema has no field for: with it, the file can be judged as the test is."""
    observation = judged.observation
    outcomes = {verdict.metric.name: verdict.outcome.value for verdict in judged.verdicts}
    return {
        "format": 1,
        "test": observation.test,
        "hardware": None if hardware is None else encode(hardware),
        "facts": dict(observation.facts),
        "configuration": dict(observation.configuration.values),
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


def _device_info(hardware: Hardware | None) -> dict[str, Any] | None:
    if hardware is None:
        return None
    info: dict[str, Any] = {
        "arch": hardware.arch,
        "card_type": hardware.board,
        "device_name": hardware.board,
        "simulated": hardware.simulated,
    }
    if hardware.mesh is not None:
        shape = [int(extent) for extent in re.findall(r"\d+", hardware.mesh)]
        info |= {"mesh_shape": shape, "device_count": prod(shape)}
    return info


def _text(known: Mapping[str, Scalar], *names: str) -> str | None:
    found = (known.get(name) for name in names)
    return next((value for value in found if isinstance(value, str) and value), None)


def _count(known: Mapping[str, Scalar], *names: str) -> int | None:
    found = (known.get(name) for name in names)
    return next((value for value in found if type(value) is int), None)


def _number(known: Mapping[str, Scalar], name: str) -> float | None:
    value = known.get(name)
    return float(value) if type(value) in {int, float} and isinstance(value, (int, float)) else None


def write_benchmarks(run: Run, folder: Path) -> None:
    """Write the tests of a run that ends now into a folder.

    Raises:
        WriteError: the folder or the disk refused.
    """
    now = datetime.now(timezone.utc)
    for file in benchmark_files(run, origin_of(run, os.environ, now=now)):
        write_text(folder / file.name, file.text)


def origin_of(run: Run, variables: Mapping[str, str], *, now: datetime) -> Origin:
    """Return what GitHub's variables and the run itself tell of a run that ends now."""
    ended = now.isoformat(timespec="seconds")
    repository, pipeline = variables.get("GITHUB_REPOSITORY"), variables.get("GITHUB_RUN_ID")
    server = variables.get("GITHUB_SERVER_URL")
    actor = variables.get("GITHUB_TRIGGERING_ACTOR") or variables.get("GITHUB_ACTOR")
    linked = server and repository and pipeline
    return Origin(
        run_start_ts=_utc(run.environment.started_at) or ended,
        run_end_ts=ended,
        device_hostname=variables.get("RUNNER_NAME") or platform.node(),
        git_repo_name=repository or None,
        git_commit_hash=run.environment.commit,
        git_commit_ts=_utc(run.environment.committed_at),
        git_branch_name=_branch(variables) or run.environment.branch,
        github_pipeline_id=_id(pipeline),
        github_pipeline_link=f"{server}/{repository}/actions/runs/{pipeline}" if linked else None,
        # GitHub does not tell a job its id: a step before has to ask for it.
        github_job_id=_id(variables.get("GITHUB_JOB_ID")),
        user_name=actor or None,
    )


def _branch(variables: Mapping[str, str]) -> str | None:
    return variables.get("GITHUB_HEAD_REF") or variables.get("GITHUB_REF_NAME") or None


def _id(text: str | None) -> int | None:
    return int(text) if text is not None and text.isascii() and text.isdigit() else None


def _utc(text: str | None) -> str | None:
    """Return a time with its zone as that of UTC; None for one that has none."""
    try:
        moment = datetime.fromisoformat((text or "").replace("Z", "+00:00"))
    except ValueError:
        return None
    if moment.tzinfo is None:
        return None
    return moment.astimezone(timezone.utc).isoformat(timespec="seconds")
