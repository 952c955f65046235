"""Runs on a machine whose devices are handed out by a broker, as Tenstorrent's tt-device-mcp."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.behaviour.model import counts_of, refusal_of
from tests.device.rig import CONFTEST, MODELS, SILENCE, Rig, play, said
from tests.device.script import Fault
from tests.harness.project import Ran, clean

if TYPE_CHECKING:
    from collections.abc import Iterator

OPTIONS = ("--ttnn-perf", "--ttnn-perf-missing=ignore", "--ttnn-perf-confirm=0")
WALL = "--ttnn-perf-passes=wall"
RESET = ("--ttnn-perf-reset", "touch reset")
CRASH = play(faults=(Fault(kind="segfault", number=3, processes=(0,)),))
#: The first process to have the chip never ends; told from a slow one by its silence.
HANG = play(faults=(Fault(kind="hang", number=3, processes=(0,)),))
#: Listens, and runs a job: a command for a shell, in a session of its own.
SERVER = """
import os, socket, subprocess, sys
server = socket.socket(socket.AF_UNIX)
server.bind(sys.argv[1])
server.listen()
if len(sys.argv) > 2:
    sys.exit(subprocess.run(["/bin/bash", "-c", sys.argv[2]], start_new_session=True).returncode)
print("up", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path).write(conftest=CONFTEST, test_models=MODELS)


@pytest.fixture
def socket() -> Iterator[Path]:
    """Return where the broker listens; such names are short."""
    with tempfile.TemporaryDirectory(prefix="ttp") as folder:
        yield Path(folder) / "broker.sock"


@contextmanager
def broker(socket: Path) -> Iterator[dict[str, str]]:
    """Have a broker that is up, and return the variable that names it."""
    command = [sys.executable, "-c", SERVER, str(socket)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        assert server.stdout.readline() == "up\n"
        yield {"TT_DEVICE_MCP_SOCKET": str(socket)}
        server.stdin.close()


def run_as_job(rig: Rig, socket: Path, *arguments: str) -> Ran:
    """Run pytest as a job of a broker."""
    job = shlex.join([sys.executable, "-m", "pytest", *arguments])
    done = subprocess.run(
        [sys.executable, "-c", SERVER, str(socket), job], cwd=rig.project, text=True,
        env=rig.environment(TT_DEVICE_MCP_SOCKET=str(socket)), capture_output=True, timeout=300,
        check=False,
    )  # fmt: skip
    return Ran(done.returncode, clean(done.stdout), clean(done.stderr))


def test_a_run_beside_its_queue_is_refused_with_the_command_that_waits_in_it(
    rig: Rig, socket: Path
) -> None:
    with broker(socket) as variables:
        ran = rig.pytest(play(), *OPTIONS, WALL, "-k", "sum or dense", **variables)
    queued = shlex.join(["pytest", *OPTIONS, WALL, "-k", "sum or dense"])
    assert refusal_of(ran) == (
        f"the device broker tt-device-mcp is up ({socket}): runs on its devices go through its "
        f"queue: tt-device-mcp run {shlex.quote(queued)}"
    )
    assert rig.machine.journal() == []


@pytest.mark.long
def test_its_jobs_go_on_and_reset_nothing(rig: Rig, socket: Path) -> None:
    rig.machine.play(CRASH)
    ran = run_as_job(rig, socket, *OPTIONS, WALL, *RESET)

    assert (ran.code, counts_of(ran)) == (1, "1 failed, 1 passed")
    assert said(ran)[-1] == (
        "ttnn-perf: the device is not reset by hand: the device broker tt-device-mcp resets its "
        "devices itself, after this job"
    )
    assert not (rig.project / "reset").exists()
    assert rig.workers() == ["1-wall", "2-wall"]


@pytest.mark.long
def test_after_a_hang_a_job_ends_and_says_who_resets(rig: Rig, socket: Path) -> None:
    rig.machine.play(HANG)
    ran = run_as_job(rig, socket, *OPTIONS, WALL, *RESET, *SILENCE)

    assert ran.code == 1
    assert (
        "its worker was not started: one before it left a device in an unusable state: the "
        "device broker tt-device-mcp resets its devices itself, after this job"
    ) in ran.text
    assert not (rig.project / "reset").exists()
    assert rig.workers() == ["1-wall"]


@pytest.mark.long
def test_beside_its_queue_its_own_reset_is_the_only_one(rig: Rig, socket: Path) -> None:
    (rig.project / "ttnn_perf.toml").write_text('broker = "ignore"\n')
    program = rig.path / "bin" / "tt-device-mcp"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\necho $1 > {rig.project}/asked\n")
    program.chmod(0o755)
    path = {"PATH": f"{program.parent}:{os.environ['PATH']}"}
    with broker(socket) as variables:
        ran = rig.pytest(CRASH, *OPTIONS, WALL, *RESET, **variables)
        assert said(ran)[-1] == (
            "ttnn-perf: the device is not reset by hand: the device broker tt-device-mcp is up "
            f"({socket}): tt-device-mcp reset"
        )
        assert not (rig.project / "reset").exists()
        reset = ("--ttnn-perf-reset", "tt-device-mcp reset")
        ran = rig.pytest(CRASH, *OPTIONS, WALL, *reset, **variables, **path)
    assert said(ran)[-1] == "ttnn-perf: resetting the device: tt-device-mcp reset"
    assert (rig.project / "asked").read_text() == "reset\n"
