"""Runs that cannot write what they measured: refused before they cost time, or saved in part."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.faults.refusals import PYTEST_USAGE, assert_no_traceback, assert_refused

if TYPE_CHECKING:
    from pathlib import Path

    from tests.faults.conftest import Scene

#: No file of this process may grow from here on: what a full disk does to every write.
FULL = "resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))"


@pytest.mark.parametrize(
    "option",
    ["--ttnn-perf-baselines={}", "--ttnn-perf-artifacts={}", "--ttnn-perf-json={}/run.json"],
)
def test_a_place_that_cannot_be_written_is_refused_before_any_test_runs(
    scene: Scene, forbidden: Path, option: str
) -> None:
    before = scene.on_disk()
    ran = scene.project.pytest("--ttnn-perf-update", option.format(forbidden))
    assert_refused(ran, code=PYTEST_USAGE, says=(str(forbidden), "cannot write: "))
    assert "test_model" not in ran.text
    assert scene.on_disk() == before


def test_a_baselines_folder_that_is_only_read_need_not_be_writable(
    scene: Scene, forbidden: Path
) -> None:
    ran = scene.project.pytest(
        "--ttnn-perf", f"--ttnn-perf-baselines={forbidden}", "--ttnn-perf-missing=ignore"
    )
    assert ran.code == 0


def test_a_disk_that_fills_up_during_a_run_costs_neither_baseline_nor_verdict(
    scene: Scene,
) -> None:
    scene.project.write(
        test_model=f"""
        import resource

        def test_speed(ttnn_perf):
            ttnn_perf.record("wall_time", [500, 501, 499], unit="ns")
            {FULL}
        """
    )
    before = scene.on_disk()
    ran = scene.project.pytest_process("--ttnn-perf-update", "-p", "no:cacheprovider")
    assert_no_traceback(ran)
    assert ran.code == 1
    assert "IMPROVED" in ran.text
    assert f"not written: {scene.baseline}: cannot write: File too large" in _unabbreviated(
        ran.text, scene
    )
    after = scene.on_disk()
    assert {name: after[name] for name in before if name != "test_model.py"} == {
        name: content for name, content in before.items() if name != "test_model.py"
    }


def _unabbreviated(text: str, scene: Scene) -> str:
    """Put back the name of this host, which the harness takes out of outputs."""
    return text.replace("host-ARCH", scene.baseline.parent.name)


def test_a_disk_that_is_full_from_the_start_is_refused(scene: Scene) -> None:
    scene.project.write(conftest=f"import resource\n{FULL}")
    before = scene.on_disk()
    ran = scene.project.pytest_process("--ttnn-perf", "-p", "no:cacheprovider")
    assert_refused(ran, code=PYTEST_USAGE, says=(".jsonl: cannot write: File too large",))
    assert scene.on_disk() == before
