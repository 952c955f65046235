"""One run per chip: a second one waits, says for whom, and gives up when it was told to."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from tests.behaviour.model import counts_of
from tests.device.rig import CONFTEST, MODELS, UPDATE, Rig, play
from tests.harness.project import Ran, clean

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

#: Waits inside a test, with the chip, until it is told to go on.
HELD = (
    MODELS
    + """
    @quick
    def test_held(ttnn_perf, device):
        import pathlib, time
        pathlib.Path("held").touch()
        end = time.monotonic() + 300
        while not pathlib.Path("go").exists() and time.monotonic() < end:
            time.sleep(0.05)
        ttnn_perf.measure(ttnn.add, put(device), put(device))
"""
)


def started(rig: Rig, test: str) -> subprocess.Popen[str]:
    """Start a run of one test."""
    command = [
        sys.executable, "-u", "-m", "pytest", "--ttnn-perf-passes=wall", *UPDATE, "-k", test,
    ]  # fmt: skip
    return subprocess.Popen(
        command, cwd=rig.project, env=rig.environment(), stdout=subprocess.PIPE, text=True
    )


@pytest.fixture
def first(tmp_path: Path) -> Iterator[tuple[Rig, subprocess.Popen[str]]]:
    """Return a machine, and a run that has its chip until it finds the file ``go``."""
    rig = Rig(tmp_path).write(conftest=CONFTEST, test_models=HELD)
    rig.machine.play(play())
    with started(rig, "held") as run:
        try:
            while not (rig.project / "held").exists():
                assert run.poll() is None, run.communicate()[0]
                time.sleep(0.05)
            yield rig, run
        finally:
            run.kill()


def test_a_second_run_waits_says_so_and_then_runs(
    first: tuple[Rig, subprocess.Popen[str]],
) -> None:
    rig, holder = first
    with started(rig, "sum") as second:
        assert second.stdout is not None
        lines = iter(second.stdout.readline, "")
        told = next((line for line in lines if "waiting for" in line), "")
        command = re.escape("__main__.py --ttnn-perf-passes=wall --ttnn-perf-update=new")
        who = rf"chip 0: held by pid {holder.pid} \({command}.*\) since \d{{4}}-\S+Z"
        assert re.fullmatch(f"ttnn-perf: waiting for {who}\n", told), told
        # Nobody else has had the chip meanwhile.
        assert len(rig.machine.journal()) == 1
        (rig.project / "go").touch()
        for run in (holder, second):
            text = run.communicate(timeout=300)[0]
            assert counts_of(Ran(0, clean(text))) == "1 passed, 2 deselected"
            assert run.returncode == 0
    owners = {each["pid"] for each in rig.machine.journal()}
    assert len(owners) == 2
    assert not {holder.pid, second.pid} & owners
    assert (rig.path / "tmp" / "ttnn-perf-locks" / "chip-0.holder").read_text() == ""
