"""Two runs in one checkout, and several processes of one run: none sees the files of another."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from tests.behaviour.model import counts_of
from tests.device.rig import CONFTEST, MODELS, UPDATE, Rig, play

if TYPE_CHECKING:
    from pathlib import Path

#: Two sides of one test. That with more ops has captured its first call when it lets the other
#: run, from its beginning to its end, before it goes on to read what it has captured.
SIDES = """
    import os, time
    from pathlib import Path

    import numpy as np
    import pytest
    import ttnn

    calls = 0

    @pytest.mark.ttnn_perf(warmup=1, iterations=2)
    def test_side(ttnn_perf, device):
        ones = np.ones((32, 32), np.float32)
        x = ttnn.from_torch(ones, layout=ttnn.TILE_LAYOUT, device=device)

        def longer():
            global calls
            calls += 1
            if calls == 2:
                Path("captured").touch()
                while not Path("other-ended").exists():
                    time.sleep(0.01)
            return ttnn.relu(ttnn.matmul(x, x))

        ttnn_perf.measure(longer if os.environ["SIDE"] == "longer" else lambda: ttnn.add(x, x))
"""
TEST = "test_side.py::test_side"
PATIENCE_S = 300.0


def two_chips(rig: Rig) -> Rig:
    (rig.path / "devices").mkdir()
    for chip in ("0", "1"):
        (rig.path / "devices" / chip).touch()
    rig.machine.play(play(chips=2, tracy=False))
    return rig


def reports(rig: Rig) -> list[str]:
    """Return all that is kept of captures."""
    folder = rig.project / ".ttnn_perf" / "reports"
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_two_runs_in_one_checkout_read_what_they_have_captured_themselves(tmp_path: Path) -> None:
    rig = two_chips(Rig(tmp_path).write(conftest=CONFTEST, test_side=SIDES))
    common = ("--ttnn-perf-isolate=process", "--ttnn-perf-confirm=0")
    words = [*common, "--ttnn-perf-update=new", "--ttnn-perf-json=longer.json"]
    longer = subprocess.Popen(
        [sys.executable, "-m", "pytest", *words], cwd=rig.project, text=True,
        env=rig.environment(SIDE="longer", TT_VISIBLE_DEVICES="0"), stdout=subprocess.PIPE,
    )  # fmt: skip
    try:
        end_s = time.monotonic() + PATIENCE_S
        while not (rig.project / "captured").exists() and time.monotonic() < end_s:
            time.sleep(0.01)
        other = rig.pytest(
            None, *common, "--ttnn-perf", "--ttnn-perf-json=other.json", SIDE="other",
            TT_VISIBLE_DEVICES="1",
        )  # fmt: skip
        (rig.project / "other-ended").touch()
        said, _ = longer.communicate(timeout=PATIENCE_S)
    finally:
        longer.kill()

    assert longer.returncode == 0, said
    assert "1 failed" in counts_of(other), "it has no baseline"
    for side, ops in (("longer", 2), ("other", 1)):
        record = json.loads((rig.project / f"{side}.json").read_text())
        metrics = record["tests"][TEST]["metrics"]
        assert metrics["report_op_count"]["samples"] == [ops], side
    (file,) = (rig.project / "baselines").rglob("test_side.json")
    stored = json.loads(file.read_text())["tests"]["test_side"]["metrics"]
    assert [session[:3] for session in stored["report_op_count"]["sessions"]] == [[2, 0, 1]]


RAISING = """
    calls = 0

    @quick
    def test_raises(ttnn_perf, device):
        x = put(device)

        def model():
            global calls
            calls += 1
            assert calls < 3
            return ttnn.relu(x)

        ttnn_perf.measure(model)
"""


@pytest.mark.long
def test_each_run_replaces_the_captures_of_its_tests_and_leaves_nothing_else(
    tmp_path: Path,
) -> None:
    rig = Rig(tmp_path).write(conftest=CONFTEST, test_models=MODELS + RAISING)
    kept = []
    for isolate in ("process", "inline"):
        rig.pytest(play(tracy=False), *UPDATE, f"--ttnn-perf-isolate={isolate}")
        kept.append({name: (_file(rig, name)) for name in reports(rig)})

    files = ("db.sqlite", "graph_capture.json", "graph_capture.python_io.json")
    tests = ("test_dense", "test_raises", "test_sum")
    assert list(kept[1]) == [f"test_models.ops/{test}/{file}" for test in tests for file in files]
    assert kept[0].keys() == kept[1].keys()
    assert all(kept[0][name] != kept[1][name] for name in kept[0]), "those of the last run"
    assert sorted(path.name for path in (rig.project / ".ttnn_perf").iterdir()) == [
        ".gitignore", "reports", "runs",
    ]  # fmt: skip
    assert [path.name for path in (rig.project / ".ttnn_perf" / "reports").iterdir()] == [
        "test_models.ops"
    ]


#: A build whose import of captured graphs fails for one of the tests.
FAILING = (
    CONFTEST
    + """
    @pytest.fixture(autouse=True)
    def broken_import(request, monkeypatch):
        def import_report(*arguments):
            raise RuntimeError("database is locked")

        if "dense" in request.node.name:
            monkeypatch.setattr(ttnn.graph, "import_report", import_report)
    """
)
FAILED = (
    "NO_DATA: report_op_count has no samples: the graph capture failed: "
    "RuntimeError: database is locked; do without with --ttnn-perf-profiler off"
)


@pytest.mark.long
def test_a_capture_that_failed_is_said_by_test_and_nothing_is_stored_without_it(
    tmp_path: Path,
) -> None:
    rig = Rig(tmp_path).write(conftest=FAILING, test_models=MODELS)

    ran = rig.pytest(play(tracy=False), *UPDATE)

    assert (ran.code, counts_of(ran)) == (1, "1 failed, 1 passed")
    assert FAILED in " ".join(ran.text.split())
    (file,) = (rig.project / "baselines").rglob("test_models.json")
    assert list(json.loads(file.read_text())["tests"]) == ["test_sum"]

    without = rig.pytest(None, *UPDATE, "--ttnn-perf-profiler=off")

    assert (without.code, counts_of(without)) == (0, "2 passed"), without.text
    assert sorted(json.loads(file.read_text())["tests"]) == ["test_dense", "test_sum"]


def _file(rig: Rig, name: str) -> tuple[int, int]:
    state = (rig.project / ".ttnn_perf" / "reports" / name).stat()
    return state.st_ino, state.st_mtime_ns


#: Each test has a file in a temporary folder until the other has begun, and then still.
BESIDE = (
    MODELS.replace("ttnn_perf, device", "ttnn_perf, together, device")
    + """
    import os, time
    from pathlib import Path

    @pytest.fixture
    def together(tmp_path, request):
        kind = os.environ["TT_METAL_LOGS_PATH"].split("/passes/")[1].split("/")[1]
        met = Path("met") / kind
        met.mkdir(parents=True, exist_ok=True)
        (tmp_path / "mine").touch()
        (met / request.node.name).touch()
        for _ in range(2000):
            if len(list(met.iterdir())) == 2:
                break
            time.sleep(0.01)
        yield
        assert (tmp_path / "mine").exists()
    """
)


@pytest.mark.long
def test_processes_of_one_run_have_their_own_files(tmp_path: Path) -> None:
    rig = two_chips(Rig(tmp_path).write(conftest=CONFTEST, test_models=BESIDE))

    ran = rig.pytest(
        play(chips=2), *UPDATE, "-n", "2", PYTEST_ADDOPTS="-p steady_clock -p no:hypothesispytest",
    )  # fmt: skip

    assert (ran.code, counts_of(ran)) == (0, "2 passed"), ran.text
    owners = [each["variables"] for each in rig.machine.journal()]
    for name, passes in (("TT_METAL_LOGS_PATH", 2), ("TT_METAL_PROFILER_DIR", 1)):
        folders = [owner[name] for owner in owners if name in owner]
        assert len(set(folders)) == len(folders) == 2 * passes, name
        assert all("/.ttnn_perf/passes/" in folder for folder in folders)
