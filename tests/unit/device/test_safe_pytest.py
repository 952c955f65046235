"""The lock and the mark of tt-metal's run_safe_pytest.sh."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf.device.chips import DIRTY, LOCKED, in_the_way

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


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


def test_another_process_with_the_lock_is_waited_for(root: Path, lock: Path) -> None:
    (root / DIRTY).touch()
    held_by(root, lock, 4_000_000)
    assert in_the_way(root) == (
        f"{lock} is held by pid 4000000, which runs tests on the devices: let it end"
    )


def test_a_run_that_the_script_started_is_not_in_its_own_way(root: Path, lock: Path) -> None:
    held_by(root, lock, 77)
    process(root, os.getpid(), 88)
    process(root, 88, 77)
    assert in_the_way(root) is None


def test_a_holder_that_the_kernel_does_not_name_is_told_as_such(root: Path, lock: Path) -> None:
    assert in_the_way(root) == (
        f"{lock} is held by a process that cannot be seen here, such as one of another container: "
        "let it end"
    )


#: Says what stands against a run below a folder that takes the place of the machine's.
ASK = "import sys, pathlib; from pytest_ttnn_perf.device.chips import in_the_way; "
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
