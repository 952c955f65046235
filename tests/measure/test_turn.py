"""Turns between processes: who waits, who may go on, and what happens to a turn left behind."""

from __future__ import annotations

import select
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

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
