"""Results of benchmarks in four forms: tests, hardware, settings and metrics of them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pytest

from pytest_ttnn_perf.analysis.readers.benchmark_json import read_benchmark_run, read_comparable_run
from pytest_ttnn_perf.analysis.readers.detect import ArtifactKind, kind_of
from pytest_ttnn_perf.core.errors import InputError
from pytest_ttnn_perf.core.hardware import Hardware
from tests.harness.benchmarks import (
    complete_run,
    measurement,
    server_report,
    tt_xla_result,
    vllm_result,
    write_json,
)

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_ttnn_perf.core.observation import Observation

N150 = Hardware("wormhole_b0", "n150")


def read(tmp_path: Path, document: object) -> Observation:
    """Return the one test of a document."""
    run = read_benchmark_run(write_json(tmp_path / "result.json", document))
    (judged,) = run.tests.values()
    return judged.observation


@pytest.mark.parametrize(
    "document",
    [
        {"device_info": [{"board_info": {"board_type": "n150"}}], "host_sw_vers": {}},
        {"format": 1, "tests": {"a::b": {"facts": {"ml_model_name": "m", "run_type": "x"}}}},
        {"context": {"date": "x"}, "benchmarks": [{"name": "BM_x", "real_time": 1.0}]},
    ],
    ids=["tt-smi", "run record", "google-benchmark"],
)
def test_others_are_not_taken_for_one(tmp_path: Path, document: object) -> None:
    try:
        kind = kind_of(write_json(tmp_path / "any.json", document))
    except InputError:
        return
    assert kind is not ArtifactKind.BENCHMARK_JSON


def test_a_complete_run(tmp_path: Path) -> None:
    test = read(tmp_path, complete_run())

    assert test.test == "benchmark:falcon-7b::demo[batch=32,isl=128,osl=128]"
    assert test.hardware == N150
    assert dict(test.facts) == {
        "model": "falcon-7b",
        "batch": 32,
        "input_sequence_length": 128,
        "output_sequence_length": 128,
        "num_layers": 32,
        "precision": "bfp8",
    }
    assert dict(test.configuration) == {"data_parallel": 1}
    found = {
        name: (m.metric.unit, m.metric.better.value, m.samples, m.limits.target, m.why_ungated)
        for name, m in test.metrics.items()
    }
    assert found == {
        "time(s).compile_prefill": ("s", "lower", (12.5,), None, "a compile time"),
        "tokens/s.inference_prefill": ("tok/s", "higher", (1990.0,), 2000.0, None),
        "time_to_token.inference_prefill": ("s", "lower", (0.195,), None, None),
        "tokens/s.inference_decode": ("tok/s", "higher", (549.0,), 560.0, None),
        "tokens/s/user.inference_decode": ("tok/s/user", "higher", (17.16,), 17.5, None),
    }
    assert [name for name, m in test.metrics.items() if not m.gated] == ["time(s).compile_prefill"]


@pytest.mark.parametrize("value", [None, math.nan, math.inf, "12", True, [1.0], 10**400])
def test_a_value_that_is_no_finite_number_is_missed_by_name(tmp_path: Path, value: object) -> None:
    test = read(tmp_path, complete_run(measurement("inference_decode", "tokens/s", value)))
    (sample,) = test.metrics["tokens/s.inference_decode"].samples
    assert math.isnan(sample)
    assert test.metrics["tokens/s.inference_decode"].gated


def test_of_tt_xla(tmp_path: Path) -> None:
    test = read(tmp_path, tt_xla_result(ttft=12.5))

    assert test.test == "benchmark:ResNet 50 HF::ResNet_50_HF_8_3_224_224_-1_32[batch=8]"
    assert test.hardware == Hardware("wormhole_b0", "n150", "1x1")
    assert test.metrics["ttft"].metric.unit == "ms"
    assert test.metrics["total_samples"].why_ungated is not None
    # -1 says that nobody set it.
    assert [m.limits.target for m in test.metrics.values()] == [None] * 4
    assert "num_layers" not in test.facts
    # A count of what was compiled is a result: it does not make two runs incomparable.
    assert "ttnn_total_ops" not in test.configuration
    assert test.environment["ttnn_total_ops"] == 180


def test_of_vllm(tmp_path: Path) -> None:
    test = read(tmp_path, vllm_result())

    assert test.test == "benchmark:meta-llama/Llama-3.1-8B-Instruct::serving[concurrency=1]"
    assert test.hardware is None
    gated = {name for name, observed in test.metrics.items() if observed.gated}
    assert gated == {
        "completed",
        "output_throughput",
        "request_throughput",
        "mean_ttft_ms",
        "median_ttft_ms",
        "mean_tpot_ms",
    }
    assert test.metrics["p99_ttft_ms"].why_ungated == (
        "a percentile or a spread: mean and median are gated"
    )
    assert test.configuration["num_prompts"] == 8


def test_what_differs_in_every_run_is_no_setting(tmp_path: Path) -> None:
    volatile = {
        "timestamp": 1793610000.5,
        "run_id": 17,
        "log": "/home/me/logs/17.txt",
        "session": "3f2b8c1e-0d5a-4a53-9c55-3f5a1b2c3d4e",
    }
    settings = {
        "model_id": "llama",
        "sample_on_host": "yes",
        "max_tokens_per_user": 128,
        "weights": "models/llama",
        "seed": 17,
    }
    test = read(tmp_path, complete_run(config_params={**volatile, **settings}))
    assert dict(test.configuration) == settings
    assert dict(test.environment) == volatile


def test_a_servers_report_has_a_test_for_each_benchmark_and_evaluation(tmp_path: Path) -> None:
    run = read_benchmark_run(write_json(tmp_path / "report.json", server_report()))

    served = "benchmark:meta-llama/Llama-3.1-8B-Instruct::serving[concurrency=1,isl=128,osl=128]"
    evaluated = "benchmark:Llama-3.1-8B-Instruct::eval_ifeval"
    assert list(run.tests) == [served, evaluated]
    assert run.hardware == N150
    assert "std_tps" not in run.tests[served].observation.metrics  # "n/a"
    score = run.tests[evaluated].observation.metrics["score"]
    assert (score.gated, score.metric.kind.value) == (True, "accuracy")


def test_speed_is_not_gated_while_tokens_are_forced(tmp_path: Path) -> None:
    speed = measurement("inference_decode", "tokens/s", 549.0)
    accuracy = measurement("inference_decode", "top1_token_accuracy", 96.0)
    test = read(tmp_path, complete_run(speed, accuracy))
    assert test.test == "benchmark:falcon-7b::demo_accuracy[batch=32,isl=128,osl=128]"
    gated = {name: observed.gated for name, observed in test.metrics.items()}
    assert gated == {
        "tokens/s.inference_decode": False,
        "top1_token_accuracy.inference_decode": True,
    }
    assert "no real decoding" in (test.metrics["tokens/s.inference_decode"].why_ungated or "")


def test_runs_of_one_test_in_other_settings_are_refused(tmp_path: Path) -> None:
    file = write_json(tmp_path / "two.json", [complete_run(), complete_run(precision="bf16")])
    with pytest.raises(InputError, match="differ in precision: bfp8 and bf16"):
        read_benchmark_run(file)


@pytest.mark.parametrize(
    ("info", "hardware"),
    [
        ({"card_type": "wormhole_b0"}, None),
        ({"device_name": "T3K", "mesh_shape": [1, 8]}, Hardware("wormhole_b0", "t3k", "1x8")),
        ({"arch": "wormhole_llmbox", "mesh_shape": [8, 1]}, Hardware("wormhole_b0", "t3k", "8x1")),
        ({"device_name": "galaxy_bh"}, Hardware("blackhole", "blackhole_galaxy")),
        ("n150", Hardware("wormhole_b0", "n150")),
        ({"device_name": "n300", "mesh_shape": ["../x", 0]}, Hardware("wormhole_b0", "n300")),
    ],
)
def test_hardware_is_read_and_never_guessed(
    tmp_path: Path, info: dict[str, Any] | str | None, hardware: Hardware | None
) -> None:
    assert read(tmp_path, complete_run(device_info=info)).hardware == hardware


def test_without_a_board_there_is_no_comparison(tmp_path: Path) -> None:
    file = write_json(tmp_path / "result.json", vllm_result())
    with pytest.raises(InputError, match=r"does not say on which board .* --hardware"):
        read_comparable_run(file)
    run = read_comparable_run(file, N150)
    assert run.hardware == N150


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (complete_run(ml_model_name="a\0b"), r"\['ml_model_name'\]: expected a name"),
        (complete_run(measurements=7), r"\['measurements'\]: expected a list, found 7"),
        ([], "found none"),
        (
            complete_run(config_params={"ttnn_perf": {"hardware": "x"}}),
            r": \['config_params'\]\['ttnn_perf'\]\['hardware'\]: expected an object, found 'x'",
        ),
        (
            complete_run(
                measurement("run", "a", 1.0),
                config_params={"ttnn_perf": {"metrics": {"a": {"better": "up"}}}},
            ),
            r": \['config_params'\]\['ttnn_perf'\]\['metrics'\]\['a'\]\['",
        ),
    ],
)
def test_damage_is_named(tmp_path: Path, document: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_benchmark_run(write_json(tmp_path / "result.json", document))
