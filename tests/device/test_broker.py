"""Runs on a machine whose devices are handed out by a broker, as Tenstorrent's tt-device-mcp."""

from __future__ import annotations

import shlex
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.behaviour.model import refusal_of
from tests.device.rig import CONFTEST, MODELS, Rig, play

if TYPE_CHECKING:
    from collections.abc import Iterator

OPTIONS = ("--ttnn-perf", "--ttnn-perf-missing=ignore", "--ttnn-perf-confirm=0")
WALL = "--ttnn-perf-passes=wall"
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
