"""Results of benchmarks as JSON: of tt-metal and its dashboards, tt-xla, vLLM, inference servers.

All become runs of one form. A file has one of them, or several: as a list, as one per line, or as
the report of a server.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any, Final

from pytest_ttnn_perf._base.errors import InputError
from pytest_ttnn_perf._base.files import parse_json
from pytest_ttnn_perf.analysis.captures.ttlang_lines import bounded_text
from pytest_ttnn_perf.records.benchmark import BenchmarkRun, Measurement
from pytest_ttnn_perf.records.json_value import LARGEST, LARGEST_COUNT, Value

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

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
    """Read the runs of a file, at least one.

    Raises:
        InputError: with file, line and what was expected.
    """
    text = bounded_text(file, largest=_LARGEST_FILE)
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
    if "ml_model_name" in members:
        yield _complete(value)
    elif "measurements" in members:
        yield _of_tt_xla(value)
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


def _complete(value: Value) -> BenchmarkRun:
    """Read a ``PartialBenchmarkRun`` or ``CompleteBenchmarkRun``."""
    texts: dict[str, Any] = {name: _text(value, name) for name in _TEXTS}
    counts: dict[str, Any] = {name: _count(value, name) for name in _COUNTS}
    return BenchmarkRun(
        run_type=_text(value, "run_type") or "benchmark",
        ml_model_name=_name(value.field("ml_model_name")),
        measurements=_measurements(value, "name"),
        device_info=_object(value, "device_info") or _device(value, "device_info"),
        config_params=_object(value, "config_params"),
        perf_analysis=_flag(value, "perf_analysis"),
        training=_flag(value, "training"),
        **texts,
        **counts,
    )


_TEXTS: Final = (
    "run_start_ts",
    "run_end_ts",
    "git_repo_name",
    "git_commit_hash",
    "git_commit_ts",
    "git_branch_name",
    "github_pipeline_link",
    "user_name",
    "docker_image",
    "device_hostname",
    "device_ip",
    "ml_model_type",
    "precision",
    "dataset_name",
    "profiler_name",
    "image_dimension",
)
_COUNTS: Final[tuple[str, ...]] = (
    "github_pipeline_id",
    "github_job_id",
    "num_layers",
    "batch_size",
    "input_sequence_length",
    "output_sequence_length",
)


def _of_tt_xla(value: Value) -> BenchmarkRun:
    """Read a result of tt-xla's benchmarks: -1 and "" stand for what is not known."""
    return BenchmarkRun(
        None,
        None,
        run_type=_text(value, "run_type") or "benchmark",
        ml_model_name=_name(value.field("model")),
        # The step is the model's name: it tells nothing apart.
        measurements=_measurements(value, "measurement_name", with_step=False),
        device_info=_object(value, "device_info"),
        ml_model_type=_text(value, "model_type"),
        num_layers=_count(value, "num_layers", at_least=1),
        batch_size=_count(value, "batch_size", at_least=1),
        config_params=_config_of_tt_xla(value),
        precision=_text(value, "precision"),
        dataset_name=_text(value, "dataset_name"),
        input_sequence_length=_count(value, "input_sequence_length", at_least=1),
        output_sequence_length=_count(value, "output_sequence_length", at_least=1),
        image_dimension=_text(value, "image_dimension"),
    )


def _config_of_tt_xla(value: Value) -> dict[str, Any]:
    """Return the settings; the total time is that of so many samples, which are one of them."""
    totals = [
        item.members().get("value")
        for item in value.field("measurements").array()
        if item.members().get("measurement_name") == _SAMPLES
    ]
    config = _object(value, "config") or {}
    return {**config, _SAMPLES: totals[0]} if totals else config


_SAMPLES: Final = "total_samples"


def _measurements(value: Value, name: str, *, with_step: bool = True) -> tuple[Measurement, ...]:
    return tuple(
        Measurement(
            _text(item, "step_start_ts"),
            _text(item, "step_end_ts"),
            iteration=_count(item, "iteration") or 0,
            step_name=_text(item, "step_name") or "" if with_step else "",
            step_warm_up_num_iterations=_count(item, "step_warm_up_num_iterations"),
            name=_name(item.field(name)),
            value=_number(item, "value"),
            target=_positive(item, "target"),
            device_power=_positive(item, "device_power"),
            device_temperature=_positive(item, "device_temperature"),
        )
        for item in value.field("measurements").array()
    )


#: What a server's benchmark tells of its setting.
_SERVING_SETTINGS: Final[Mapping[str, str]] = {
    "num_prompts": "num_prompts",
    "num_requests": "num_prompts",
    "request_rate": "request_rate",
    "burstiness": "burstiness",
    "images_per_prompt": "images_per_prompt",
    "image_height": "image_height",
    "image_width": "image_width",
    "backend": "backend",
    "endpoint_type": "backend",
    "task_type": "task_type",
    "num_inference_steps": "num_inference_steps",
    "streaming_enabled": "streaming_enabled",
    "preprocessing_enabled": "preprocessing_enabled",
}
#: What reports of servers write for a number that the benchmark does not have.
_NOT_AVAILABLE: Final = "n/a"
_CONCURRENCY: Final = ("max_concurrency", "max_con", "concurrency")
#: Numbers that are settings, or stand in other fields.
_NOT_MEASURED: Final = frozenset(
    {
        *_SERVING_SETTINGS,
        *_CONCURRENCY,
        "input_sequence_length",
        "output_sequence_length",
        "random_input_len",
        "random_output_len",
        "isl",
        "timestamp",
        "best_of",
    }
)


def _serving(value: Value) -> BenchmarkRun:
    """Read a result of vLLM's ``benchmark_serving``, or a row of an inference server's report."""
    named = [name for name in ("model_id", "model_name") if _text(value, name)]
    model = _name(value.field(named[0] if named else "model"))
    return BenchmarkRun(
        None,
        None,
        run_type="serving",
        ml_model_name=model,
        measurements=tuple(_numbers_of(value)),
        device_info=_device(value),
        config_params=_settings(value),
        input_sequence_length=_first(value, "input_sequence_length", "random_input_len", "isl"),
        output_sequence_length=_first(value, "output_sequence_length", "random_output_len"),
    )


def _evaluation(value: Value) -> BenchmarkRun:
    """Read one evaluation of an inference server's report."""
    names = ("score", "published_score", "gpu_reference_score")
    return BenchmarkRun(
        None,
        None,
        run_type=f"eval_{_text(value, 'task_name') or 'task'}",
        ml_model_name=_name(value.field("model")),
        measurements=tuple(
            _measured(name, _number(value, name)) for name in names if name in value.members()
        ),
        device_info=_device(value),
    )


def _media(value: Value, numbers: Value) -> BenchmarkRun:
    """Read a server's benchmark of images, sound or embeddings. Its ``ttft`` is in seconds."""
    measurements = tuple(
        _measured("ttft_s", item.value) if item.name == "ttft" else item
        for item in _numbers_of(numbers)
    )
    return BenchmarkRun(
        None,
        None,
        run_type=f"serving_{_text(value, 'task_type') or 'media'}",
        ml_model_name=_name(value.field("model")),
        measurements=measurements,
        device_info=_device(value),
        config_params={**_settings(value), **_settings(numbers)},
        input_sequence_length=_first(numbers, "isl"),
    )


def _numbers_of(value: Value) -> Iterator[Measurement]:
    """Yield all numbers; a known name with anything else is a number that is not there."""
    from pytest_ttnn_perf.records.known_measurements import known_measurement

    for name, raw in value.members().items():
        if name in _NOT_MEASURED or isinstance(raw, (list, dict)) or raw == _NOT_AVAILABLE:
            continue
        is_number = isinstance(raw, (int, float)) and not isinstance(raw, bool)
        # Goodput is null where nobody asked for it.
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
        ours: members[name]
        for name, ours in _SERVING_SETTINGS.items()
        if isinstance(members.get(name), (str, int, float))
    }
    concurrency = _first(value, *_CONCURRENCY)
    return settings if concurrency is None else {**settings, "concurrency": concurrency}


# Producers write what they have: a field that is not as it should be is one that is not known. Only
# numbers that are measured are missed.


def _name(value: Value) -> str:
    """Read a name. No command line can hold a null character, so no test is named with one."""
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


def _flag(value: Value, name: str) -> bool | None:
    raw = value.members().get(name)
    return raw if isinstance(raw, bool) else None


def _object(value: Value, name: str) -> dict[str, Any] | None:
    raw = value.members().get(name)
    return raw if isinstance(raw, dict) else None


def _number(value: Value, name: str) -> float:
    raw = value.members().get(name)
    is_number = isinstance(raw, (int, float)) and not isinstance(raw, bool)
    if isinstance(raw, (int, float)) and is_number and -LARGEST <= raw <= LARGEST:
        return raw
    return math.nan


def _positive(value: Value, name: str) -> float | None:
    """Read a number above 0: -1 stands for one that nobody set or measured."""
    found = _number(value, name)
    return found if found > 0 else None
