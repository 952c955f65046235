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


@pytest.fixture
def held(tmp_path: Path) -> Iterator[tuple[Rig, subprocess.Popen[str]]]:
    """Return a machine, and a run that has its chip until it finds the file ``go``."""
    rig = Rig(tmp_path).write(conftest=CONFTEST, test_models=HELD)
    rig.machine.play(play())
    command = [sys.executable, "-m", "pytest", "--ttnn-perf-passes=wall", *UPDATE, "-k", "held"]
    with subprocess.Popen(
        command, cwd=rig.project, env=rig.environment(), stdout=subprocess.PIPE, text=True
    ) as first:
        try:
            while not (rig.project / "held").exists():
                assert first.poll() is None, first.communicate()[0]
                time.sleep(0.05)
            yield rig, first
        finally:
            first.kill()


def who(first: subprocess.Popen[str]) -> str:
    """Return how the run that holds the chip is named to others, as a pattern."""
    command = re.escape("__main__.py --ttnn-perf-passes=wall --ttnn-perf-update=new")
    return rf"chip 0: held by pid {first.pid} \({command}.*\) since \d{{4}}-\S+Z"


def test_a_second_run_waits_says_so_and_then_runs(
    held: tuple[Rig, subprocess.Popen[str]], tmp_path: Path
) -> None:
    rig, first = held
    command = [
        sys.executable,
        "-u",
        "-m",
        "pytest",
        "--ttnn-perf-passes=wall",
        *UPDATE,
        "-k",
        "sum",
    ]
    with subprocess.Popen(
        command, cwd=rig.project, env=rig.environment(), stdout=subprocess.PIPE, text=True
    ) as second:
        assert second.stdout is not None
        lines = iter(second.stdout.readline, "")
        told = next((line for line in lines if "waiting for" in line), "")
        assert re.fullmatch(f"ttnn-perf: waiting for {who(first)}\n", told), told
        # Nobody else has had the chip meanwhile.
        assert len(rig.machine.journal()) == 1
        (rig.project / "go").touch()
        ended = first.communicate(timeout=300)[0]
        rest = second.communicate(timeout=300)[0]
    assert (first.returncode, counts_of(Ran(0, clean(ended)))) == (0, "1 passed, 2 deselected")
    assert (second.returncode, counts_of(Ran(0, clean(rest)))) == (0, "1 passed, 2 deselected")
    owners = [each["pid"] for each in rig.machine.journal()]
    assert len(set(owners)) == 2
    assert not {first.pid, second.pid} & set(owners)
    holder = tmp_path / "tmp" / "ttnn-perf-locks" / "chip-0.holder"
    assert holder.read_text() == ""
