"""A run as dashboards take it: one ``CompleteBenchmarkRun`` for each test."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from hashlib import blake2b
from math import isfinite, prod
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf.gate.judge import representative
from pytest_ttnn_perf.records.benchmark import OURS, WHOLE_RUN, BenchmarkRun, Measurement
from pytest_ttnn_perf.records.json import encode
from pytest_ttnn_perf.records.metric import split_metric

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pytest_ttnn_perf.records.hardware import Hardware, Scalar
    from pytest_ttnn_perf.records.observation import JudgedTest, MetricObservation, Run

#: What runs of this plugin are called.
RUN_TYPE: Final = "ttnn_perf"
#: How facts and settings may be called that the schema has a field for.
_MODEL: Final = ("model", "model_name", "ml_model_name")
_BATCH: Final = ("batch", "batch_size")
_INPUT: Final = ("input_sequence_length", "isl", "sequence_length", "seq_len")
_OUTPUT: Final = ("output_sequence_length", "osl")


@dataclass(frozen=True, slots=True)
class Origin:
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
        **{name: getattr(origin, name) for name in Origin.__dataclass_fields__},
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
