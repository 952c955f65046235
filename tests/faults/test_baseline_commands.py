"""Commands that change baselines where that is not possible: a clear error, and nothing lost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from filelock import FileLock

from pytest_ttnn_perf.core.errors import WriteError
from pytest_ttnn_perf.core.files import write_bytes
from pytest_ttnn_perf.gate import store as store_module
from tests.harness.baselines import ops, stored, times
from tests.harness.project import Ran

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tests.harness.baselines import Desk

A, B = "test_m.py::test_a", "test_m.py::test_b"
#: No file of this process may grow beyond so many bytes: what a full disk does to a write half way.
FULL = """
import json, os, resource, sys
from tests.harness.project import run_command
resource.setrlimit(resource.RLIMIT_FSIZE, (300, resource.RLIM_INFINITY))
for words in json.loads(sys.argv[1]):
    ran = run_command("baseline", *words)
    os.write(1, json.dumps([ran.code, ran.text, ran.errors]).encode() + b"\\n")
"""
ACCEPT = ("accept", "run.json", "--update", "all", "--reason", "why")
RENAME = ("rename", "test_m.py", "test_n.py")
PRUNE = ("prune", "run.json", "--full")
COMMANDS = (ACCEPT, RENAME, PRUNE)


@pytest.fixture
def lived_in(desk: Desk) -> Desk:
    """Two baselines, one of which is gone, and a record that changes the other."""
    desk.store(A, stored(times(10.0, 10.1), table=ops("Matmul")))
    desk.store(B, stored(times(5.0), table=ops("Conv2d")))
    desk.record(tests={A: [12.0]})
    return desk


def on_full_disk(desk: Desk, *commands: Sequence[str]) -> list[Ran]:
    """Run commands on a full disk."""
    # -B: what Python wrote of its own bytecode, cut off, would break every later import.
    command = [sys.executable, "-B", "-c", FULL, json.dumps(commands)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        command, cwd=desk.path, env=environment, stdout=subprocess.PIPE, text=True, timeout=300,
        check=True,
    )  # fmt: skip
    return [Ran(*json.loads(line)) for line in done.stdout.splitlines()]


def test_a_full_disk_is_said_and_loses_nothing(lived_in: Desk) -> None:
    before = lived_in.files()
    place = lived_in.path / "baselines" / "wormhole_b0-n150-1x1"
    for ran in on_full_disk(lived_in, *COMMANDS):
        assert ran.code == 1
        assert ran.text.splitlines()[-1][0].isdigit()  # the diff and its count, and no "wrote"
        assert ran.errors.startswith(f"ttnn-perf: not written: {place}")
        assert ran.errors.endswith(": cannot write: File too large\n")
    assert lived_in.files() == before


def test_a_lock_that_another_run_holds_is_said(
    lived_in: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "LOCK_TIMEOUT_S", 0.1)
    before = lived_in.files()
    with FileLock(lived_in.root / ".lock"):
        for words in COMMANDS:
            ran = lived_in.run(*words)
            assert ran.code == 1
            assert "another run has held" in ran.errors
    assert lived_in.files() == before


def test_a_folder_that_cannot_be_written_is_said(desk: Desk, forbidden: Path) -> None:
    desk.record(tests={A: [12.0]})
    ran = desk.run("accept", "run.json", "--baselines", forbidden)
    assert ran.code == 1
    assert "1 test, 1 metric" in ran.text
    assert ran.errors.startswith(f"ttnn-perf: not written: {forbidden}")


def test_a_broken_baseline_is_refused_before_anything_is_written(lived_in: Desk) -> None:
    file = lived_in.root / "wormhole_b0-n150-1x1" / "test_m.json"
    file.write_text(file.read_text().replace('"since": 0', '"since": 9', 1))
    before = lived_in.files()
    for words in COMMANDS:
        ran = lived_in.run(*words)
        assert (ran.code, ran.text) == (3, "")
        assert "expected an index into the 2 sessions, found 9" in ran.errors
    assert lived_in.files() == before


def test_where_one_file_cannot_be_written_none_is(
    lived_in: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = "test_z.py::test_z"
    lived_in.record(tests={other: [1.0], A: [10.0, 10.1]})

    def write(file: Path, content: bytes) -> None:
        if file.name == "test_z.json":
            raise WriteError(file, OSError(30, "Read-only file system"))
        write_bytes(file, content)

    monkeypatch.setattr(store_module, "write_bytes", write)
    ran = lived_in.run("accept", "run.json")
    assert ran.code == 1
    assert ran.errors.endswith("test_z.json: cannot write: Read-only file system")
    assert (lived_in.sessions(A), lived_in.sessions(other)) == ([10.0, 10.1], [])
