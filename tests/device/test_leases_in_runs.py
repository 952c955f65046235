"""One run per chip: a second one waits, says for whom, and gives up when it was told to."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from tests.behaviour.model import counts_of, refusal_of
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


@pytest.mark.long
def test_a_run_that_has_waited_long_enough_is_refused_with_who_holds_the_chip(
    held: tuple[Rig, subprocess.Popen[str]],
) -> None:
    rig, first = held
    (rig.project / "ttnn_perf.toml").write_text("lock_timeout = 0\n")

    ran = rig.pytest(None, "--ttnn-perf", "--ttnn-perf-passes=wall", "-k", "sum")

    remedy = "let it end, or name chips that are free in TT_VISIBLE_DEVICES"
    assert re.fullmatch(f"waited 0 s for {who(first)}: {remedy}", refusal_of(ran))
    assert rig.machine.journal() == []
    runs = (rig.project / ".ttnn_perf" / "runs").iterdir()
    assert [file.suffix for file in runs] == [".jsonl"]  # of the first run, which goes on


#: Looks for the lock of run_safe_pytest.sh beside the project: the machine's own is not for tests.
ELSEWHERE = """
    import pathlib
    from pytest_ttnn_perf.machine import chips as sharing

    HOST = pathlib.Path(__file__).parents[1] / "host"
    in_the_way = sharing.in_the_way
    sharing.in_the_way = lambda **more: in_the_way(HOST, **more)
"""
#: What run_safe_pytest.sh does with lock, mark and variables, in its order.
SAFE = """
exec 9>"{lock}"
flock 9
rm -f "$(dirname "{lock}")/tt-device.dirty"
export TT_METAL_OPERATION_TIMEOUT_SECONDS=5
export TT_METAL_DISPATCH_TIMEOUT_COMMAND_TO_EXECUTE="true > triage.log 2>&1"
touch "$(dirname "{lock}")/tt-device.dirty"
{run} -x
code=$?
rm -f "$(dirname "{lock}")/tt-device.dirty"
exit $code
"""
RUN = f"{sys.executable} -m pytest --ttnn-perf-passes=wall {' '.join(UPDATE)} -k sum"


@pytest.mark.long
@pytest.mark.skipif(shutil.which("flock") is None, reason="needs util-linux")
@pytest.mark.parametrize(
    "script",
    ["exec 9>{lock}; flock 9; {run}", "flock {lock} {run}", SAFE],
    ids=["exec", "command", "the whole script"],
)
def test_a_run_below_run_safe_pytest_goes_on_and_another_is_refused(
    tmp_path: Path, script: str
) -> None:
    rig = Rig(tmp_path).write(conftest=CONFTEST + ELSEWHERE, test_models=HELD)
    rig.machine.play(play())
    (tmp_path / "host" / "tmp").mkdir(parents=True)
    (tmp_path / "host" / "tmp" / "tt-device.dirty").touch()  # there while the script runs
    (tmp_path / "host" / "proc").symlink_to("/proc")
    lock = tmp_path / "host" / "tmp" / "tt-device.lock"
    command = ["bash", "-c", script.format(lock=lock, run=RUN.replace("sum", "held"))]
    with subprocess.Popen(
        command, cwd=rig.project, env=rig.environment(), stdout=subprocess.PIPE, text=True
    ) as first:
        try:
            while not (rig.project / "held").exists():
                assert first.poll() is None, first.communicate()[0]
                time.sleep(0.05)
            other = rig.pytest(None, *RUN.split()[3:])
        finally:
            (rig.project / "go").touch()
        ended = first.communicate(timeout=300)[0]

    assert re.fullmatch(
        rf"{re.escape(str(lock))} is held by pid \d+, which runs tests on the devices: let it end",
        refusal_of(other),
    )
    assert (first.returncode, counts_of(Ran(0, clean(ended)))) == (0, "1 passed, 2 deselected")
