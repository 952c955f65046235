"""The lock and the mark of tt-metal's run_safe_pytest.sh."""

from __future__ import annotations

import fcntl
import os
from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf.device.safe_pytest import DIRTY, LOCKED, in_the_way

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


def test_a_lock_of_nobody_that_is_known_does_not_refuse(root: Path, lock: Path) -> None:
    assert lock.exists()
    assert in_the_way(root) is None
