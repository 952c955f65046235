"""Devices that others have a say in: tt-metal's own script with its lock, and the device broker."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf.core.errors import UsageError
from pytest_ttnn_perf.core.settings import Settings
from pytest_ttnn_perf.machine.chips import DIRTY, LOCKED, in_the_way
from pytest_ttnn_perf.machine.inspection import Broker, find_broker
from pytest_ttnn_perf.plugin.preflight import _check_sharing

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "tmp").mkdir()
    (tmp_path / "proc").mkdir()
    return tmp_path


def test_a_mark_without_a_lock_is_a_device_left_behind(root: Path) -> None:
    assert in_the_way(root) is None
    (root / DIRTY).touch()
    told = f"{root / DIRTY}: a run on the devices was cut short: tt-smi -r && rm {root / DIRTY}"
    assert in_the_way(root) == told


#: Says what stands against a run below a folder that takes the place of the machine's.
ASK = "import sys, pathlib; from pytest_ttnn_perf.machine.chips import in_the_way; "
ASK += "print(in_the_way(pathlib.Path(sys.argv[1])))"


@pytest.mark.skipif(shutil.which("flock") is None, reason="needs util-linux")
def test_a_lock_that_a_shell_took_is_its_own_and_nobody_else_s(root: Path) -> None:
    (root / "proc").rmdir()
    (root / "proc").symlink_to("/proc")
    names = {"lock": str(root / LOCKED), "root": str(root), "python": sys.executable, "code": ASK}
    script = """
        ask() { "$python" -c "$code" "$root"; }
        (exec 9>"$lock"; flock 9; ask; ask 9>&-)  # as run_safe_pytest.sh does: flock has ended
        (exec 9>"$lock"; flock 9; echo $BASHPID >"$root/holder"; exec sleep 60) &
        until [ -s "$root/holder" ]; do sleep 0.05; done
        exec 8>>"$lock"
        ask; kill $!
    """
    done = subprocess.run(
        ["bash", "-c", script], env={**os.environ, **names}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    holder = (root / "holder").read_text().strip()
    held = f"{root / LOCKED} is held by pid {holder}, which runs tests on the devices: let it end"
    assert done.stdout.splitlines() == ["None", "None", held]


#: Listens, runs a job if it is given one, and stays until its stdin ends.
LISTENING = """
import socket, subprocess, sys
server = socket.socket(socket.AF_UNIX)
server.bind(sys.argv[1])
server.listen()
print("up", flush=True)
if sys.argv[2:]:
    subprocess.run(sys.argv[2:])
sys.stdin.read()
"""


@pytest.fixture
def short() -> Iterator[Path]:
    """Return a folder with a short name: those of sockets are."""
    with tempfile.TemporaryDirectory(prefix="ttp") as folder:
        yield Path(folder)


@contextmanager
def listening(file: Path, *job: str) -> Iterator[subprocess.Popen[str]]:
    file.parent.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, "TT_DEVICE_MCP_SOCKET": str(file)}
    with subprocess.Popen(
        [sys.executable, "-c", LISTENING, str(file), *job], stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, text=True, env=environment,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        yield process
        assert process.stdin is not None
        process.stdin.close()


def test_a_broker_is_looked_for_where_its_own_client_looks(short: Path) -> None:
    own = short / f"tmp/tt-device-mcp-{os.getuid()}/state/daemon.sock"
    named = {"TT_DEVICE_MCP_SOCKET": str(short / "any.sock")}
    assert find_broker({}, short) is None
    with listening(own):
        assert find_broker({}, short) == Broker(own, runs_us=False)
        assert find_broker(named, short) is None
        (short / "proc/self").mkdir(parents=True)  # where it runs jobs as their users
        (short / "proc/self/cgroup").write_text("0::/system.slice/ttdev-job-042.scope\n")
        assert find_broker({}, short) == Broker(own, runs_us=True)
    assert own.exists()
    assert find_broker({}, short) is None, "it left its socket behind"


def test_a_run_beside_its_queue_is_refused_with_the_command_that_waits_in_it(
    short: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["/usr/bin/pytest", "--ttnn-perf", "-k", "sum or dense"])
    socket = short / "broker.sock"
    with (
        listening(socket),
        pytest.raises(UsageError) as refused,
    ):
        _check_sharing(Settings(), {"TT_DEVICE_MCP_SOCKET": str(socket)})
    queued = shlex.quote("pytest --ttnn-perf -k 'sum or dense'")
    assert str(refused.value) == (
        f"the device broker tt-device-mcp is up ({socket}): runs on its devices go through its "
        f"queue: tt-device-mcp run {queued}"
    )
