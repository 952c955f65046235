"""Devices that others have a say in: tt-metal's own script with its lock, and the device broker."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf.machine.chips import DIRTY, LOCKED, Broker, find_broker, in_the_way

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "tmp").mkdir()
    (tmp_path / "proc").mkdir()
    return tmp_path


@pytest.fixture
def lock(root: Path) -> Iterator[Path]:
    file = root / LOCKED
    with file.open("w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield file


def held_by(root: Path, lock: Path, pid: int) -> None:
    line = f"1: FLOCK  ADVISORY  WRITE {pid} 08:01:{lock.stat().st_ino} 0 EOF\n"
    (root / "proc" / "locks").write_text(f"2: POSIX  ADVISORY  WRITE 1 08:01:1 0 EOF\n{line}")


def process(root: Path, pid: int, parent: int) -> None:
    (root / "proc" / str(pid)).mkdir()
    (root / "proc" / str(pid) / "stat").write_text(f"{pid} (a) b) S {parent} 1 1")


def test_nothing_is_against_it_without_the_files(root: Path) -> None:
    assert in_the_way(root) is None


def test_a_mark_without_a_lock_is_a_device_left_behind(root: Path) -> None:
    (root / DIRTY).touch()
    assert in_the_way(root) == (
        f"{root / DIRTY}: a run on the devices was cut short: tt-smi -r && rm {root / DIRTY}"
    )


def test_another_process_with_the_lock_is_named(root: Path, lock: Path) -> None:
    (root / DIRTY).touch()
    held_by(root, lock, 4_000_000)
    process(root, 4_000_000, 1)
    assert in_the_way(root) == (
        f"{lock} is held by pid 4000000, which runs tests on the devices: let it end"
    )


def test_a_run_that_the_script_started_is_not_in_its_own_way(root: Path, lock: Path) -> None:
    held_by(root, lock, 77)
    process(root, os.getpid(), 88)
    process(root, 88, 77)
    assert in_the_way(root) is None


@pytest.mark.parametrize("told", [False, True], ids=["no line", "no process"])
def test_a_holder_that_the_kernel_does_not_name_is_told_as_such(
    root: Path, lock: Path, *, told: bool
) -> None:
    if told:  # as in a container, if the program that took it has ended
        held_by(root, lock, 0)
    assert in_the_way(root) == (
        f"{lock} is held by a process that /proc/locks does not show, such as one of another "
        "container: let it end"
    )


def test_who_took_it_and_has_ended_is_not_said_to_run_tests(root: Path, lock: Path) -> None:
    held_by(root, lock, 4_000_000)
    assert in_the_way(root) == (
        f"{lock} is held by a process that cannot be inspected; pid 4000000, which took it, has "
        "ended, and passed it on, perhaps to another user's: let it end"
    )


def test_where_a_broker_is_up_it_is_what_resets(root: Path) -> None:
    (root / DIRTY).touch()
    said = in_the_way(root, reset="tt-device-mcp reset")
    assert said is not None
    assert said.endswith(f": tt-device-mcp reset && rm {root / DIRTY}")


#: Says what stands against a run below a folder that takes the place of the machine's.
ASK = "import sys, pathlib; from pytest_ttnn_perf.machine.chips import in_the_way; "
ASK += "print(in_the_way(pathlib.Path(sys.argv[1])))"


@pytest.fixture
def real(root: Path) -> Path:
    """Return a folder with the processes and locks of this machine."""
    (root / "proc").rmdir()
    (root / "proc").symlink_to("/proc")
    return root


def told(real: Path, script: str) -> str:
    """Return what is said below a shell script; it has the command ``ask``, and ``$lock``."""
    names = {"lock": str(real / LOCKED), "root": str(real), "python": sys.executable, "code": ASK}
    environment, ask = {**os.environ, **names}, 'ask() { "$python" -c "$code" "$root"; }; '
    done = subprocess.run(
        ["bash", "-c", ask + script], env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


needs_flock = pytest.mark.skipif(shutil.which("flock") is None, reason="needs util-linux")


@needs_flock
@pytest.mark.parametrize(
    "script",
    [
        'exec 9>"$lock"; flock 9; ask',  # as run_safe_pytest.sh does: flock has ended
        'exec 9>"$lock"; flock 9; exec "$python" -c "$code" "$root"',  # no shell is left either
        'exec 9>"$lock"; flock 9; ask 9>&-',  # a wrapper between closes descriptors
        'exec 9>"$lock"; flock 9; (ask 9>&-)',
        'export -f ask; flock "$lock" bash -c "ask; true"',
        'export -f ask; flock --close "$lock" bash -c "ask; true"',
    ],
)
def test_a_lock_that_a_shell_took_is_the_run_s_own(real: Path, script: str) -> None:
    assert told(real, script) == "None"


@needs_flock
@pytest.mark.parametrize("itself_open", ["", 'exec 8>>"$lock"; '])
def test_a_lock_that_another_shell_took_is_not(real: Path, itself_open: str) -> None:
    other = '(exec 9>"$lock"; flock 9; echo $BASHPID >holder; exec sleep 60) & '
    wait = "until [ -s holder ]; do sleep 0.05; done; "
    script = f"cd {real}; {other}{wait}{itself_open}ask; kill $!; cat holder"

    said, _, holder = told(real, script).rpartition("\n")

    locked = real / LOCKED
    assert said == (
        f"{locked} is held by pid {holder}, which runs tests on the devices: let it end"
    )


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
FIND = "import os; from pytest_ttnn_perf.machine.chips import find_broker; "
FIND += "print(find_broker(os.environ).runs_us, flush=True)"


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


def test_without_a_socket_there_is_no_broker(short: Path) -> None:
    assert find_broker({}, short) is None
    assert find_broker({"TT_DEVICE_MCP_SOCKET": str(short / "none")}, short) is None


@pytest.mark.parametrize(
    ("place", "variables"),
    [
        ("run/tt-device-broker/broker.sock", {}),
        ("tmp/tt-device-mcp-{uid}/state/daemon.sock", {}),
        ("tmp/tt-device-mcp-{uid}/daemon.sock", {}),
        ("state/daemon.sock", {"TT_DEVICE_MCP_STATE_DIR": "ROOT/state"}),
        ("mine/state/daemon.sock", {"TT_DEVICE_MCP_INSTALL_DIR": "ROOT/mine"}),
        ("any.sock", {"TT_DEVICE_MCP_SOCKET": "ROOT/any.sock"}),
    ],
)
def test_a_broker_is_looked_for_where_its_own_client_looks(
    short: Path, place: str, variables: dict[str, str]
) -> None:
    file = short / place.format(uid=os.getuid())
    environment = {name: text.replace("ROOT", str(short)) for name, text in variables.items()}
    (short / "proc").symlink_to("/proc")
    with listening(file):
        assert find_broker(environment, short) == Broker(file, runs_us=False)
    assert file.exists()
    assert find_broker(environment, short) is None, "it left its socket behind"


def test_a_process_of_its_job_knows_that_it_is_one(short: Path) -> None:
    with listening(short / "s", sys.executable, "-c", FIND) as broker:
        assert broker.stdout is not None
        assert broker.stdout.readline() == "True\n"
    with listening(short / "t", "sh", "-c", f"{sys.executable} -c '{FIND}'; true") as broker:
        assert broker.stdout is not None
        assert broker.stdout.readline() == "True\n"


def test_a_job_that_runs_as_its_user_is_known_by_its_control_group(short: Path) -> None:
    (short / "proc" / "self").mkdir(parents=True)
    cgroup = "0::/system.slice/ttdev-job-042.scope\n"
    (short / "proc" / "self" / "cgroup").write_text(cgroup)
    with listening(short / "s"):
        found = find_broker({"TT_DEVICE_MCP_SOCKET": str(short / "s")}, short)
    assert found == Broker(short / "s", runs_us=True)


@pytest.mark.parametrize(
    ("runs_us", "command", "allowed"),
    [
        (False, "tt-smi -r", False),
        (False, "tt-device-mcp reset", True),
        (False, "tt-device-mcp reset --force", True),
        (False, "tt-device-mcp status; tt-smi -r", False),
        (True, "tt-smi -r", False),
        (True, "tt-device-mcp reset", False),  # it would end this job
        (None, "tt-device-mcp reset", False),
    ],
)
def test_who_may_reset_its_devices(runs_us: bool | None, command: str, *, allowed: bool) -> None:
    assert Broker(Path("/run/s"), runs_us).allows(command) is allowed
