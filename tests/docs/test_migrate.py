"""The page on migrating a suite: what it shows is printed, what it says is gated is gated."""

from __future__ import annotations

import json
from textwrap import dedent
from typing import TYPE_CHECKING, Any

import pytest

from tests.docs.pages import Reader
from tests.existing.helpers import FILES
from tests.existing.idioms import numbers

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


PAGE = "docs/how-to/migrate.md"
#: What a reader has besides: tt-metal's markers and helpers, a model, and clocks that agree.
GROUND = {
    **FILES,
    "pytest.ini": """
        [pytest]
        markers =
            models_performance_bare_metal: end to end
            models_device_performance_bare_metal: device times
    """,
    "conftest.py": """
        import time

        time.perf_counter = lambda: time.perf_counter_ns() / 1e9
    """,
    "models/unet.py": """
        import time

        import numpy as np

        INPUT = np.linspace(-1, 1, 64, dtype=np.float32)


        def reference(x):
            return 2 * x


        def unet(x):
            time.sleep(0.005)
            return (2 * x).astype(np.float16)


        class Pipeline:
            def compile(self, first):
                time.sleep(0.5)

            def preallocate_output_tensors_on_host(self, count):
                pass

            def enqueue(self, inputs):
                self.outputs = [unet(each) for each in inputs]
                return self

            def pop_all(self):
                return self.outputs

            def cleanup(self):
                pass
    """,
}
OF_REPORT = {
    "device_kernel_time",
    "device_kernel_time_conv",
    "device_kernel_time_matmul",
    "op_count",
}
OF_CSV = {"inference_time_s.end_to_end_perf", "throughput_iter_per_s.end_to_end_perf"}
#: What the page says is gated of each test of today.
GATED_TODAY: Mapping[str, set[str]] = {
    "test_cnn.py::test_pipeline": OF_CSV,
    "test_device.py::test_resnet[16]": OF_REPORT,
    "test_device.py::test_unet": OF_REPORT,
    "test_end_to_end.py::test_unet": {*OF_CSV, "pcc"},
    "test_formats.py::test_sweep[bfloat16-1]": set(),
    "test_formats.py::test_sweep[bfloat16-8]": set(),
    "test_formats.py::test_sweep[bfloat8_b-1]": set(),
    "test_formats.py::test_sweep[bfloat8_b-8]": set(),
    "test_llama.py::test_demo": {
        "time_to_token.inference_prefill",
        "tokens/s/user.inference_decode",
    },
    "test_ops.py::test_decoder": OF_REPORT,
    "test_pcc.py::test_layer": {"pcc"},
    "test_realtime.py::test_rms_norm": {"realtime_program_time.rms_norm"},
    "test_trimmed.py::test_unet_fps": set(),
    "test_uniad.py::test_uniad": set(),
}


def write(folder: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(dedent(text))


def gated(record: Path) -> dict[str, set[str]]:
    tests: dict[str, Any] = json.loads(record.read_text())["tests"]
    return {
        test: {name for name, metric in entry["metrics"].items() if metric.get("gated", True)}
        for test, entry in tests.items()
    }


@pytest.mark.long
def test_the_page_shows_what_is_printed_and_says_what_is_gated(tmp_path: Path) -> None:
    write(tmp_path, {**GROUND, "numbers.json": json.dumps(numbers())})
    reader, observed = Reader(tmp_path), None
    for command, missing, output in reader.follow(PAGE):
        assert not missing, f"$ {command}\nnot printed:\n" + "\n".join(missing) + f"\n{output}"
        if observed is None and command.startswith("pytest today"):
            (file,) = (tmp_path / ".ttnn_perf/runs").glob("*.json")
            observed = gated(file)

    assert observed == {f"today/{test}": names for test, names in GATED_TODAY.items()}
