"""One run of a benchmark as dashboards take it: Tenstorrent's ``CompleteBenchmarkRun``."""

from __future__ import annotations

from typing import Any, Final

from pytest_ttnn_perf._base.dataclass import dataclass

#: The member of ``config_params`` that says what no field of the schema has room for.
OURS: Final = "ttnn_perf"
#: The step of a measurement that belongs to no step: the whole run.
WHOLE_RUN: Final = "run"


@dataclass(frozen=True, slots=True)
class Measurement:
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


@dataclass(frozen=True, slots=True)
class BenchmarkRun:
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
