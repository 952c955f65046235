"""What the names of measurements mean: unit, direction, kind, and whether they are gated."""

from __future__ import annotations

import pytest

from pytest_ttnn_perf.analysis.readers.benchmark_json import (
    UNKNOWN_NAME,
    known_measurement,
    metric_of_measurement,
)
from pytest_ttnn_perf.core.metric import Better, Kind

#: step, name, unit, direction, kind
GATED = [
    ("inference_prefill", "time_to_token", "s", "lower", "time"),
    ("inference_prefill", "tokens/s", "tok/s", "higher", "throughput"),
    ("inference_decode", "tokens/s/user", "tok/s/user", "higher", "throughput"),
    ("inference_decode", "top1_token_accuracy", "%", "higher", "accuracy"),
    ("inference", "case_1_image_pcc", "", "higher", "accuracy"),
    ("denoising", "denoising", "s", "lower", "time"),
    ("", "TTFT", "s", "lower", "time"),
    ("", "TTFT_ms", "ms", "lower", "time"),
    ("", "prefill_t/s", "tok/s", "higher", "throughput"),
    ("", "decode_t/s/u", "tok/s/user", "higher", "throughput"),
    ("", "fps", "fps", "higher", "throughput"),
    ("", "pearson_correlation", "", "higher", "accuracy"),
    ("", "pcc", "", "higher", "accuracy"),
    ("end_to_end_perf", "inference_time_s", "s", "lower", "time"),
    ("end_to_end_perf", "throughput_iter_per_s", "samples/s", "higher", "throughput"),
    ("device_perf", "AVG DEVICE KERNEL DURATION [ns]", "ns", "lower", "time"),
    ("device_perf", "AVG DEVICE BRISC KERNEL SAMPLES/S", "samples/s", "higher", "throughput"),
    ("op", "all_gather-line-avg-us", "us", "lower", "time"),
    ("op", "total_kernel_duration_us", "us", "lower", "time"),
    ("op", "total_op_to_op_latency_us", "us", "lower", "time"),
    ("", "samples_per_sec", "samples/s", "higher", "throughput"),
    ("", "ttft", "ms", "lower", "time"),
    ("", "audio_token_step_mean_s", "s", "lower", "time"),
    ("", "mean_ttft_ms", "ms", "lower", "time"),
    ("", "p150_kernel_duration_us", "us", "lower", "time"),
    ("", "output_throughput", "tok/s", "higher", "throughput"),
    ("", "request_throughput", "req/s", "higher", "throughput"),
    ("", "mean_tps", "tok/s/user", "higher", "throughput"),
    ("", "completed", "requests", "higher", "count"),
    ("", "failed", "requests", "lower", "count"),
]

#: step, name, unit, why
UNGATED = [
    ("compile_prefill", "time(s)", "s", "compile time"),
    ("end_to_end_perf", "compile_time_s", "s", "compile time"),
    ("", "compile_decode", "s", "compile time"),
    ("end_to_end_perf", "expected_inference_time_s", "s", "expected value"),
    ("empty_run", "tokens/s", "", "placeholder"),
    ("", "std_ttft_ms", "ms", "spread"),
    ("", "p99_tpot_ms", "ms", "percentile"),
    ("", "p99.9_request_latency_us", "us", "percentile"),
    ("", "p100_ttft_ms", "ms", "percentile"),
    ("", "model_load_time_s", "s", "get ready"),
    ("", "warmup_time_ms", "ms", "get ready"),
    ("", "cpu_inference_time_s", "s", "CPU"),
    ("", "total_time", "s", "throughput says the same"),
]


@pytest.mark.parametrize(("step", "name", "unit", "better", "kind"), GATED)
def test_gated(step: str, name: str, unit: str, better: str, kind: str) -> None:
    known = known_measurement(name, step)
    assert known is not None
    assert (known.unit, known.better, known.kind) == (unit, Better(better), Kind(kind))
    assert known.why_ungated is None


@pytest.mark.parametrize(("step", "name", "unit", "why"), UNGATED)
def test_ungated_says_why(step: str, name: str, unit: str, why: str) -> None:
    known = known_measurement(name, step)
    assert known is not None
    assert why in (known.why_ungated or "")
    assert known.unit == unit


@pytest.mark.parametrize(
    "name",
    [
        "mood", "", "wq_kv_a-avg", "wq_kv_a-max", "audio_length_s", "num_iters", "tokens", "minute",
        "time_to_token_17", "tsu_estimate", "all_gather-line-min-us", "gpu_reference_score",
        "MIN DEVICE KERNEL DURATION [ns]", "MAX DEVICE FW SAMPLES/S", "total_samples",
        "Lower Threshold AVG DEVICE KERNEL SAMPLES/S", "first_run_s",
    ],
)  # fmt: skip
def test_a_name_that_does_not_say_what_it_is_is_unknown(name: str) -> None:
    assert known_measurement(name) is None
    assert metric_of_measurement(name or "x")[1] == UNKNOWN_NAME


def test_steps_keep_measurements_of_one_name_apart() -> None:
    names = [
        metric_of_measurement("tokens/s", step)[0].name
        for step in ("inference_prefill", "inference_decode", "")
    ]
    assert names == ["tokens/s.inference_prefill", "tokens/s.inference_decode", "tokens/s"]
    assert metric_of_measurement("vae", "vae")[0].name == "vae"
