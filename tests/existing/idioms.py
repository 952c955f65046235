"""How performance tests of tt-metal are written today: each idiom once, and what is gated of it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from textwrap import dedent
from typing import TYPE_CHECKING, Any

from tests.existing.helpers import FILES
from tests.harness.captures import capture, op, signpost

if TYPE_CHECKING:
    from tests.harness.project import Project

FILE = "test_model.py"
MARKER = "models_performance_bare_metal"
CONFIG = f"markers = ['{MARKER}']\n"
_HEAD = """\
import json
from pathlib import Path

import numpy as np
import pytest

NUMBERS = json.loads(Path(__file__).with_name("numbers.json").read_text())
marked = pytest.mark.models_performance_bare_metal
"""


@dataclass(frozen=True, slots=True)
class Idiom:
    """A way to write a test, and what is gated of it; ``by_clock`` if that takes real time."""

    name: str
    source: str
    gated: tuple[str, ...]
    by_clock: bool = False

    @property
    def text(self) -> str:
        """The file of the test."""
        return _HEAD + dedent(self.source)


def numbers(scale: float = 1.0) -> dict[str, Any]:
    """Return what the models of these tests take; ``scale`` is how much longer than usual."""
    ns = 1_000_000 * scale
    report = capture(
        op("Conv2d", 3_600_000),  # compiles
        signpost("start"),
        op("Conv2d", 3 * ns),
        op("Matmul", 0.671 * ns),
        signpost("stop"),
        op("Untilize", 71_000),
    )
    plain = capture(op("Conv2d", 3 * ns), op("Matmul", ns))
    rows = [op("AllGather", each * ns) for each in (9.0, 3.0, 1.0, 1.0)]
    mesh = capture(
        *(
            op("Matmul", each * ns, {"DEVICE ID": str(device)})
            for device, each in enumerate((1.0, 1.5))
        )
    )
    return {
        "seconds": 0.02 * scale,
        "captures": {
            "test_signposts": report,
            "test_plain": plain,
            "test_op": capture(op("Embedding", 5e6), *rows),
            "test_mesh": mesh,
        },
        "programs": [
            ["kernels/rms.cpp", [40_000 * scale, 41_000 * scale]],
            ["kernels/other.cpp", [9_000]],
        ],
    }


#: The time of a report's window, which the time of each kind of op and their number explain.
_OF_REPORT = (
    "device_kernel_time", "device_kernel_time_conv", "device_kernel_time_matmul", "op_count",
)  # fmt: skip
IDIOMS = (
    Idiom(
        "device perf, signposts, expected rate",
        """
        from models.perf.device_perf_utils import (
            check_device_perf, prep_device_perf_report, run_device_perf,
        )

        @marked
        def test_model():
            cols = ["DEVICE KERNEL"]
            key = "AVG DEVICE KERNEL SAMPLES/S"
            results = run_device_perf(
                "pytest models/test_signposts.py", "resnet", 1, cols, 16, has_signposts=True
            )
            expected = check_device_perf(results, 0.03, {key: 4358})
            prep_device_perf_report("resnet", 16, results, expected, "hifi2")
        """,
        _OF_REPORT,
    ),
    Idiom(
        "device perf through another module, with an assertion",
        """
        import support

        @marked
        def test_model():
            support.run("pytest models/test_plain.py", 4_000_000)
        """,
        _OF_REPORT,
    ),
    Idiom(
        "device perf of one op, without its warm-up",
        """
        from models.perf.device_perf_utils import run_device_perf_detailed

        @marked
        def test_model():
            results = run_device_perf_detailed(
                "pytest models/test_op.py", "ccl", ["DEVICE KERNEL"], op_name="AllGather",
                warmup_iters=1,
            )
            assert results["DEVICE KERNEL"]["AVG"] < 2e9
        """,
        (
            "device_kernel_time.allgather",
            "device_kernel_time_collective.allgather",
            "op_count.allgather",
        ),
    ),
    Idiom(
        "end to end, CSV report",
        """
        from models.perf.perf_utils import prep_perf_report

        @marked
        def test_model():
            prep_perf_report(
                model_name="unet", batch_size=2, inference_and_compile_time=9.0,
                inference_time=NUMBERS["seconds"], expected_compile_time=30,
                expected_inference_time=0.02, comments="trace",
            )
        """,
        ("inference_time_s.end_to_end_perf", "throughput_iter_per_s.end_to_end_perf"),
    ),
    Idiom(
        "benchmark data of a language model",
        """
        @marked
        def test_model():
            from models.perf.benchmarking_utils import BenchmarkData, BenchmarkProfiler

            profiler, data = BenchmarkProfiler(), BenchmarkData()
            profiler.start("run")
            for step in ("compile_prefill", "inference_prefill", "inference_decode"):
                profiler.start(step)
                profiler.end(step)
            profiler.end("run")
            seconds = NUMBERS["seconds"]
            data.add_measurement(profiler, 0, "compile_prefill", "time(s)", 31.0)
            data.add_measurement(profiler, 0, "inference_prefill", "time_to_token", seconds)
            data.add_measurement(
                profiler, 0, "inference_decode", "tokens/s/user", 1 / seconds, target=60
            )
            data.add_measurement(profiler, 0, "inference_decode", "mood", 3)
            data.save_partial_run_json(
                profiler, run_type="demo", ml_model_name="Llama-3.1-8B", batch_size=32,
                input_sequence_length=128, output_sequence_length=200,
            )
        """,
        ("time_to_token.inference_prefill", "tokens/s/user.inference_decode"),
    ),
    Idiom(
        "profiler of steps alone",
        """
        import time

        from models.perf.benchmarking_utils import BenchmarkProfiler

        @marked
        def test_model():
            profiler = BenchmarkProfiler()
            with profiler("compile"):
                time.sleep(0.001)
            for iteration in range(3):
                with profiler("inference_decode", iteration):
                    time.sleep(0.002)
            assert profiler.get_duration("inference_decode", 1) < 5
        """,
        ("step_time.inference_decode",),
        by_clock=True,
    ),
    Idiom(
        "real-time profiler, one op",
        """
        from models.common.realtime_profiler_utils import assert_op_duration_merged

        @marked
        def test_model():
            assert_op_duration_merged(
                None, lambda: None, "kernels/rms.cpp", expected_ns=41_000, margin=0.5,
                label="RMS norm",
            )
        """,
        ("realtime_program_time.rms_norm",),
    ),
    Idiom(
        "real-time profiler, a program",
        """
        from models.common.realtime_profiler_utils import profile_realtime_program

        @marked
        def test_model():
            _, record = profile_realtime_program(None, lambda: None)
            assert record["duration_ns"] < 1e6
        """,
        ("realtime_program_time",),
    ),
)
#: What a module of the project does for its tests.
SUPPORT = """\
from models.perf import device_perf_utils


def run(command, expected_ns):
    device_perf_utils.run_model_device_perf_test(
        command, expected_ns, "unet", "unet", margin=0.5
    )
"""


def write_project(project: Project, source: str, **others: str) -> None:
    """Write a project with a test, its helpers and its numbers; ``others`` are more tests."""
    ini = f"[pytest]\nmarkers =\n    {MARKER}: as tt-metal has it\n"
    texts = {**FILES, "support.py": SUPPORT, "pytest.ini": ini, "ttnn_perf.toml": CONFIG}
    texts |= {f"{name}.py": text for name, text in others.items()}
    for name, text in {**texts, FILE: source}.items():
        file = project.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    change_numbers(project, 1.0)


def change_numbers(project: Project, scale: float) -> None:
    """Let the models of a project take longer, or less long, from the next run on."""
    (project.path / "numbers.json").write_text(json.dumps(numbers(scale)), encoding="utf-8")


def repeat_sessions(project: Project, count: int = 8) -> None:
    """Store the sessions of a baseline as those of ``count`` runs: a gate that knows its noise."""
    for file in (project.path / "baselines").rglob("*.json"):
        document = json.loads(file.read_text())
        for test in document["tests"].values():
            for metric in test["metrics"].values():
                median, mad, samples, *_ = metric["sessions"][0]
                runs = [[median, mad, samples, f"run-{number}"] for number in range(count)]
                metric["sessions"] = runs
        file.write_text(json.dumps(document))
