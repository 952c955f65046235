"""Who may use a chip: locks, ranks, and calls that touch one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf.core.errors import UsageError
from pytest_ttnn_perf.machine.chips import (
    holder_of,
    rank_of,
    take,
    take_one,
    visible_chips,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


#: Holds a chip until its stdin ends.
HOLD = """
import sys
from pathlib import Path
from pytest_ttnn_perf.machine.chips import take
sys.argv = ["/usr/bin/pytest", "models/test_resnet.py"]
lease = take([int(c) for c in {chips!r}], Path({folder!r}), timeout_s=0, print_line=print)
print("held", flush=True)
sys.stdin.read()
"""


@contextmanager
def holding(folder: Path, chips: str = "0") -> Iterator[subprocess.Popen[str]]:
    code = HOLD.format(chips=chips, folder=str(folder))
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def never(line: str) -> None:
    pytest.fail(f"said {line!r}")


def test_a_crash_gives_chips_back(tmp_path: Path) -> None:
    with holding(tmp_path) as process:
        assert holder_of(0, tmp_path) is not None
        process.send_signal(signal.SIGKILL)
        process.wait()
        # What it wrote down is still there, and not believed.
        assert (tmp_path / "chip-0.holder").read_text() != ""
        assert holder_of(0, tmp_path) is None
        with take([0], tmp_path, timeout_s=0, print_line=never):
            assert holder_of(0, tmp_path) == _me(tmp_path)


def _me(folder: Path) -> str:
    told = json.loads((folder / "chip-0.holder").read_text())
    return f"pid {os.getpid()} ({told['command']}) since {told['since']}"


def test_one_worker_of_several_takes_the_first_free_chip(tmp_path: Path) -> None:
    chips = [0, 1, 2]
    with (
        take([0], tmp_path, timeout_s=0, print_line=never),
        take_one(chips, tmp_path, timeout_s=0, print_line=never) as first,
        take_one(chips, tmp_path, timeout_s=0, print_line=never) as second,
    ):
        assert (first.chips, second.chips) == ((1,), (2,))
        assert second.environment == {"TT_VISIBLE_DEVICES": "2"}
        with pytest.raises(UsageError, match=r"waited 0 s for chip 0: held by .*; chip 1: held by"):
            take_one(chips, tmp_path, timeout_s=0, print_line=never)
        with pytest.raises(UsageError, match="chip 2: held by pid"):
            take([2, 3], tmp_path, timeout_s=0, print_line=never)
        assert holder_of(3, tmp_path) is None, "who does not get all chips keeps none"
        said: list[str] = []
        threading.Timer(0.5, first.release).start()
        with take_one(chips, tmp_path, timeout_s=60, print_line=said.append) as third:
            assert third.chips == (1,)
        assert len(said) == 1


@pytest.mark.parametrize(
    ("variables", "chips"),
    [
        ({"TT_VISIBLE_DEVICES": ""}, (0, 1, 10)),
        ({"TT_VISIBLE_DEVICES": "1"}, (1,)),
        ({"TT_VISIBLE_DEVICES": " 10 ,0,"}, (0, 10)),
        ({"TT_VISIBLE_DEVICES": "7"}, ()),
        ({"TT_VISIBLE_DEVICES": "0,0000:01:00.0"}, (0, 1, 10)),
        ({"TT_METAL_SIMULATOR": "/sim.so"}, ()),
    ],
)
def test_the_chips_that_a_process_would_use(
    tmp_path: Path, variables: dict[str, str], chips: tuple[int, ...]
) -> None:
    for name in ("0", "1", "10", "by-id"):
        (tmp_path / name).touch()
    assert visible_chips(variables, tmp_path) == chips
    assert visible_chips(variables, tmp_path / "none") == ()


@pytest.mark.parametrize(
    ("environment", "rank"),
    [
        ({"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "1"}, None),
        ({"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "2"}, (0, 2)),
        ({"PMI_RANK": "1", "PMI_SIZE": "2"}, (1, 2)),
        ({"SLURM_PROCID": "1", "SLURM_STEP_NUM_TASKS": "2"}, (1, 2)),
        # In an allocation of several, a process that was started by hand is the only one.
        ({"SLURM_PROCID": "0", "SLURM_NTASKS": "8"}, None),
    ],
    ids=str,
)
def test_a_rank_is_one_of_at_least_two(
    environment: dict[str, str], rank: tuple[int, int] | None
) -> None:
    assert rank_of(environment) == rank
