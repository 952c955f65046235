"""Results of benchmarks as their producers write them: the same members, in the same order."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

START, END = "2026-11-02T09:00:00+00:00", "2026-11-02T09:05:00+00:00"
#: What tt-metal's demo of a language model measures: step, name, value, target.
DEMO = (
    ("compile_prefill", "time(s)", 12.5, None),
    ("inference_prefill", "tokens/s", 1990.0, 2000.0),
    ("inference_prefill", "time_to_token", 0.195, None),
    ("inference_decode", "tokens/s", 549.0, 560.0),
    ("inference_decode", "tokens/s/user", 17.16, 17.5),
)


def measurement(
    step: str, name: str, value: object, target: float | None = None, *, iteration: int = 0
) -> dict[str, Any]:
    """Return a measurement of tt-metal."""
    return {
        "step_start_ts": START,
        "step_end_ts": END,
        "iteration": iteration,
        "step_name": step,
        "step_warm_up_num_iterations": 1,
        "name": name,
        "value": value,
        "target": target,
        "device_power": None,
        "device_temperature": None,
    }


def complete_run(*measurements: dict[str, Any], **members: object) -> dict[str, Any]:
    """Return a ``CompleteBenchmarkRun``, by default of a demo on an n150."""
    return {
        "run_start_ts": START,
        "run_end_ts": END,
        "run_type": "demo",
        "git_repo_name": "tenstorrent/tt-metal",
        "git_commit_hash": "e4f9f0bb",
        "git_branch_name": "main",
        "user_name": "someone",
        "device_hostname": "runner-7",
        "device_info": {"card_type": "wormhole_b0", "device_name": "N150"},
        "ml_model_name": "falcon-7b",
        "ml_model_type": "llm",
        "num_layers": 32,
        "batch_size": 32,
        "config_params": {"data_parallel": 1, "extra": {"nested": True}},
        "precision": "bfp8",
        "input_sequence_length": 128,
        "output_sequence_length": 128,
        "training": False,
        "measurements": list(measurements) or [measurement(*parts) for parts in DEMO],
        **members,
    }


def tt_xla_result(**values: object) -> dict[str, Any]:
    """Return a result of tt-xla's benchmarks, with other measurements by their names."""
    measured = {"total_samples": 128, "total_time": 4.0, "samples_per_sec": 32.0, **values}
    return {
        "model": "ResNet 50 HF",
        "model_type": "Classification, Random Input Data",
        "run_type": "ResNet_50_HF_8_3_224_224_-1_32",
        "config": {
            "model_size": "small",
            "optimization_level": 2,
            "program_cache_enabled": True,
            "trace_enabled": True,
            "ttnn_total_ops": 180,
        },
        "num_layers": -1,
        "batch_size": 8,
        "precision": "bfloat16",
        "dataset_name": "ResNet 50 HF, Random Data",
        "profile_name": "",
        "input_sequence_length": -1,
        "output_sequence_length": -1,
        "image_dimension": "3x224x224",
        "perf_analysis": False,
        "measurements": [
            {
                "iteration": 1,
                "step_name": "ResNet 50 HF",
                "step_warm_up_num_iterations": 0,
                "measurement_name": name,
                "value": value,
                "target": -1,
                "device_power": -1.0,
                "device_temperature": -1.0,
            }
            for name, value in measured.items()
        ],
        "device_info": {
            "device_name": "runner-9",
            "arch": "wormhole",
            "device_count": 1,
            "mesh_shape": None,
            "device_type": "n150",
        },
    }


def vllm_result(**members: object) -> dict[str, Any]:
    """Return what vLLM's ``benchmark_serving --save-result`` writes."""
    return {
        "date": "20261102-090000",
        "backend": "vllm",
        "model_id": "meta-llama/Llama-3.1-8B-Instruct",
        "tokenizer_id": "meta-llama/Llama-3.1-8B-Instruct",
        "num_prompts": 8,
        "request_rate": "inf",
        "burstiness": 1.0,
        "max_concurrency": 1,
        "duration": 51.2,
        "completed": 8,
        "total_input_tokens": 1024,
        "total_output_tokens": 1024,
        "request_throughput": 0.156,
        "request_goodput": None,
        "output_throughput": 20.0,
        "total_token_throughput": 40.0,
        "input_lens": [128] * 8,
        "ttfts": [0.09] * 8,
        "mean_ttft_ms": 90.0,
        "median_ttft_ms": 89.5,
        "std_ttft_ms": 1.5,
        "p99_ttft_ms": 94.0,
        "mean_tpot_ms": 48.0,
        "p99_tpot_ms": 50.0,
        **members,
    }


def server_report(**members: object) -> dict[str, Any]:
    """Return the report of an inference server: benchmarks and evaluations."""
    row = {
        "timestamp": "2026-11-02_09-00-00",
        "model_name": "Llama-3.1-8B-Instruct",
        "model_id": "meta-llama/Llama-3.1-8B-Instruct",
        "backend": "vllm",
        "device": "n150",
        "input_sequence_length": 128,
        "output_sequence_length": 128,
        "max_con": 1,
        "mean_ttft_ms": 90.0,
        "std_ttft_ms": 1.5,
        "mean_tpot_ms": 48.0,
        "mean_tps": 20.8,
        "std_tps": "n/a",
        "tps_decode_throughput": 20.8,
        "request_throughput": 0.156,
        "num_requests": 8,
        "filename": "benchmark.json",
        "task_type": "text",
        **members,
    }
    evaluation = {
        "model": "Llama-3.1-8B-Instruct",
        "device": "n150",
        "task_name": "ifeval",
        "score": 80.4,
        "published_score": 80.4,
        "gpu_reference_score": "n/a",
    }
    metadata = {"report_id": "id_1", "model_name": "Llama-3.1-8B-Instruct"}
    return {"metadata": metadata, "benchmarks": [row], "evals": [evaluation]}


def media_result() -> dict[str, Any]:
    """Return a server's benchmark of an image model, whose ``ttft`` is in seconds."""
    return {
        "benchmarks": {"num_requests": 10, "num_inference_steps": 20, "ttft": 4.5,
                       "inference_steps_per_second": 4.4},
        "model": "stable-diffusion-xl-base-1.0",
        "device": "n150",
        "timestamp": "2026-11-02 09:00:00",
        "task_type": "image",
    }  # fmt: skip


def write_json(file: Path, document: object) -> Path:
    """Write a document, as Python's own json does: NaN as such."""
    file.write_text(json.dumps(document))
    return file
