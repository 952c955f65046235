"""``preflight_timeout``: how long ttnn has to say what it can do, and what follows if not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.behaviour.model import counts_of, refusal_of
from tests.device.rig import CONFTEST, MODELS, UPDATE, Rig, play, said

if TYPE_CHECKING:
    from pathlib import Path

    from tests.harness.project import Ran

UNKNOWN = "not known whether ttnn can profile: it did not answer within 1 s; set preflight_timeout"
NO_TIMES = f"NO_DATA: device_kernel_time has no samples: device pass: {UNKNOWN}"
HOST = """
    import pytest

    @pytest.mark.ttnn_perf
    def test_host(ttnn_perf):
        ttnn_perf.record("latency", [10.0] * 3, unit="ms")
"""


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    """Return a project on a machine whose ttnn never answers, with a second to do so."""
    rig = Rig(tmp_path).write(conftest=CONFTEST, test_models=MODELS, test_host=HOST)
    (rig.project / "ttnn_perf.toml").write_text("preflight_timeout = 1\n")
    return rig


def stored(rig: Rig) -> list[str]:
    return sorted(file.name for file in (rig.project / "baselines").rglob("*.json"))


def update(rig: Rig, *arguments: str) -> Ran:
    return rig.pytest(play(mute=True), *UPDATE, *arguments)


@pytest.mark.parametrize("isolate", ["process", "inline"])
def test_no_baseline_is_stored_without_the_times_that_there_may_be(rig: Rig, isolate: str) -> None:
    ran = update(rig, f"--ttnn-perf-isolate={isolate}")

    assert said(ran)[0].endswith(f", profiler off ({UNKNOWN})")
    assert (ran.code, counts_of(ran)) == (1, "2 failed, 1 passed")
    assert ran.text.splitlines().count(NO_TIMES) == 2
    assert stored(rig) == ["test_host.json"], "which opens no device"


@pytest.mark.parametrize("option", ["--ttnn-perf-passes=wall", "--ttnn-perf-profiler=off"])
def test_who_does_without_device_times_gets_a_baseline(rig: Rig, option: str) -> None:
    ran = update(rig, option)

    assert (ran.code, counts_of(ran)) == (0, "3 passed")
    assert stored(rig) == ["test_host.json", "test_models.json"]


def test_a_profiler_that_is_asked_for_by_name_is_refused(rig: Rig) -> None:
    assert refusal_of(update(rig, "--ttnn-perf-profiler=device")) == (
        f"--ttnn-perf-profiler device: {UNKNOWN}; use auto, or off"
    )


def test_it_is_not_taken_for_an_answer_later(rig: Rig) -> None:
    update(rig)
    (rig.project / "ttnn_perf.toml").unlink()
    ran = rig.pytest(play(), *UPDATE)
    assert (ran.code, counts_of(ran)) == (0, "3 passed")
    assert "profiler device (ttnn " in said(ran)[0]
