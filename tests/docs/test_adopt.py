"""The page on adopting a suite: what it shows is printed, what it says is gated is gated."""

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


PAGE = "docs/how-to/adopt.md"
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

    """,
}
#: What the page says is gated of each test of today.
GATED_TODAY: Mapping[str, set[str]] = {
    "test_end_to_end.py::test_unet": {
        "inference_time_s.end_to_end_perf",
        "throughput_iter_per_s.end_to_end_perf",
        "pcc",
    },
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
