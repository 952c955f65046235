"""A wall time that got slower by itself: both sides are profiled, and the calls are named."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

from tests.harness.project import Ran, clean
from tests.harness.versions import Versions

if TYPE_CHECKING:
    from pathlib import Path

#: Records a time that is told, and calls a function in a timed section.
TEST = """
from pytest_ttnn_perf.measure.timing import timed_region
def convert():
    return 1
def model(convert, calls):
    for _ in range(calls):
        convert()
with timed_region(lambda time_ns: None):
    model(convert, {calls})
ttnn_perf.record('latency', {ms}, unit='ms')
"""
PASS = "calls on the host, profiled here and in "


def gate(versions: Versions, *words: str) -> Ran:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--ttnn-perf-json=run.json", "--ttnn-perf", *words],
        cwd=versions.root, env=versions.environment("src"), text=True,
        capture_output=True, timeout=300, check=False,
    )  # fmt: skip
    return Ran(done.returncode, clean(done.stdout), clean(done.stderr))


def test_what_the_host_does_more_often_is_the_cause_of_the_verdict(tmp_path: Path) -> None:
    versions = Versions(tmp_path)
    versions.model(a=TEST.format(calls=1, ms=10.0))
    versions.write(".gitignore", "__pycache__/\n.ttnn_perf/\nrun.json\n")
    versions.commit("Start")
    for update in ("new", "all", "all"):
        words = (f"--ttnn-perf-update={update}", "--ttnn-perf-reason=a run more")
        assert gate(versions, *words).code == 0
    versions.commit("Baseline")
    assert PASS not in gate(versions).text, "without a suspect nothing is profiled"

    versions.model(a=TEST.format(calls=36, ms=15.0))
    slower = gate(versions)

    assert slower.code == 1, slower.text
    assert PASS in slower.text
    assert "cause: host: +5.000 ms, " in slower.text
    assert "not explained by these" in slower.text
    record = json.loads((versions.root / "run.json").read_text())
    test = record["tests"]["test_model.py::test_model[a]"]
    assert "convert 1 → 36 calls (" in test["host"]
    assert test["by_op"] == test["host"]
    assert "cause: host: " in versions.command("gate", "run.json").text
    assert PASS not in gate(versions, "--ttnn-perf-confirm=0").text
