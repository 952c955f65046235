"""Runs on a machine whose devices are handed out by a broker, as Tenstorrent's tt-device-mcp."""

from __future__ import annotations

import shlex
import subprocess
import sys
import tempfile
from typing import TYPE_CHECKING

from tests.behaviour.model import refusal_of
from tests.device.rig import CONFTEST, MODELS, Rig, play

if TYPE_CHECKING:
    from pathlib import Path

OPTIONS = ("--ttnn-perf", "--ttnn-perf-missing=ignore", "--ttnn-perf-passes=wall")
#: Listens until its stdin ends; in a process of its own, or the run would be one of its jobs.
SERVER = """
import socket, sys
server = socket.socket(socket.AF_UNIX)
server.bind(sys.argv[1])
server.listen()
print("up", flush=True)
sys.stdin.read()
"""


def test_a_run_beside_its_queue_is_refused_with_the_command_that_waits_in_it(
    tmp_path: Path,
) -> None:
    rig = Rig(tmp_path).write(conftest=CONFTEST, test_models=MODELS)
    # Names of sockets are short.
    with tempfile.TemporaryDirectory(prefix="ttp") as folder:
        socket = f"{folder}/broker.sock"
        with subprocess.Popen(
            [sys.executable, "-c", SERVER, socket], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as server:
            assert server.stdout is not None
            assert server.stdout.readline() == b"up\n"
            ran = rig.pytest(play(), *OPTIONS, "-k", "sum or dense", TT_DEVICE_MCP_SOCKET=socket)
            server.communicate()
    queued = shlex.join(["pytest", *OPTIONS, "-k", "sum or dense"])
    assert refusal_of(ran) == (
        f"the device broker tt-device-mcp is up ({socket}): runs on its devices go through its "
        f"queue: tt-device-mcp run {shlex.quote(queued)}"
    )
    assert rig.machine.journal() == []
