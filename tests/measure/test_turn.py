"""Turns between processes: who waits, who may go on, and what happens to a turn left behind."""

from __future__ import annotations

import select
import subprocess
import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf.measure.timing import turn_in

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

#: Longer than any of this takes, however busy the machine is.
PATIENCE_S: Final = 300
#: Another process: asks for the turn, has it, and keeps it until its input ends.
OTHER: Final = """
import sys
from pathlib import Path
from pytest_ttnn_perf.measure.timing import turn_in

print("asks", flush=True)
with turn_in(Path(sys.argv[1])):
    print("has it", flush=True)
    sys.stdin.read()
"""
#: A process that forks in its turn, and whose fork lives on until its input ends.
FORKING: Final = """
import os, sys
from pathlib import Path
from pytest_ttnn_perf.measure.timing import turn_in

print("asks", flush=True)
with turn_in(Path(sys.argv[1])):
    fork = os.fork()
    if not fork:
        sys.stdin.read()
        os._exit(0)
print("gave it back", flush=True)
os.waitpid(fork, 0)
"""


@contextmanager
def another_process(folder: Path, source: str = OTHER) -> Iterator[subprocess.Popen[bytes]]:
    """Start a process that asks for the turn; it is gone afterwards."""
    with subprocess.Popen(
        [sys.executable, "-c", source, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        bufsize=0,  # what is not asked for yet stays in the pipe, where it can be seen
    ) as process:
        try:
            assert line_of(process) == "asks"
            yield process
        finally:
            assert process.stdin is not None
            process.stdin.close()


def line_of(process: subprocess.Popen[bytes]) -> str:
    """Return the next line that a process prints."""
    assert process.stdout is not None
    return process.stdout.readline().decode().strip()


def waits(process: subprocess.Popen[bytes]) -> bool:
    """Tell whether a process stays silent for a while."""
    assert process.stdout is not None
    return not select.select([process.stdout], [], [], 0.3)[0]


def test_another_process_waits_for_its_turn_which_one_that_dies_gives_back(tmp_path: Path) -> None:
    with another_process(tmp_path) as first:
        assert line_of(first) == "has it"
        with another_process(tmp_path) as second:
            assert waits(second)
            first.kill()
            assert line_of(second) == "has it"


def test_fork_that_lives_on_does_not_keep_the_turn(tmp_path: Path) -> None:
    with another_process(tmp_path, FORKING) as forking:
        assert line_of(forking) == "gave it back"
        with another_process(tmp_path) as other:
            assert line_of(other) == "has it"


def test_threads_of_one_process_share_its_turn(tmp_path: Path) -> None:
    """They would otherwise wait for each other: one for the turn, one for the other thread."""
    turn, inside = turn_in(tmp_path), threading.Barrier(2, timeout=PATIENCE_S)

    def measure() -> None:
        with turn:
            inside.wait()

    thread = threading.Thread(target=measure, daemon=True)
    with turn:
        thread.start()
        inside.wait()
    thread.join(PATIENCE_S)
    with another_process(tmp_path) as other:
        assert line_of(other) == "has it"
