"""Baselines survive whatever happens to the process that writes them."""

from __future__ import annotations

import subprocess
import sys
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf.gate import store as store_module
from pytest_ttnn_perf.gate.store import BaselineStore
from tests.faults import amender
from tests.faults.amender import FILE, HARDWARE, stored

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pytest_ttnn_perf.core.baseline import TestBaseline

TEST = f"{FILE}::test_a"


@contextmanager
def amending(mode: str, root: Path, *arguments: object) -> Iterator[subprocess.Popen[str]]:
    """Start a process that changes baselines, and wait until it says it is ready."""
    command = [sys.executable, amender.__file__, mode, str(root), *map(str, arguments)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.kill()


def leftovers(root: Path) -> list[Path]:
    """Return the temporary files under ``root``."""
    return list(root.rglob("*.new"))


def medians(baseline: TestBaseline | None) -> list[float]:
    """Return the medians of the one metric, in the order they are stored."""
    assert baseline is not None
    return [session.median for session in baseline.metrics["wall_time"].sessions]


def test_a_lock_ends_with_the_process_that_held_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with amending("hold", tmp_path) as process:
        process.kill()
        process.wait()
        monkeypatch.setattr(store_module, "LOCK_TIMEOUT_S", 5.0)
        BaselineStore(tmp_path).amend_keys({HARDWARE: {TEST: lambda _: stored(1)}})
    assert medians(BaselineStore(tmp_path).find(HARDWARE, TEST)) == [1]


@pytest.mark.parametrize(
    ("writers", "each"), [(3, 10), pytest.param(8, 20, marks=pytest.mark.long)]
)
def test_writers_at_once_lose_nothing(tmp_path: Path, writers: int, each: int) -> None:
    with ExitStack() as stack:
        processes = [
            stack.enter_context(
                amending("append", tmp_path, f"own_{writer}", 100 * writer + 1, each)
            )
            for writer in range(writers)
        ]
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        assert [process.wait(timeout=300) for process in processes] == [0] * writers
    store, shared = BaselineStore(tmp_path), []
    for writer in range(writers):
        own = list(range(100 * writer + 1, 100 * writer + 1 + each))
        assert medians(store.find(HARDWARE, f"{FILE}::own_{writer}")) == own
        shared += own
    assert sorted(medians(store.find(HARDWARE, f"{FILE}::shared"))) == shared
    assert leftovers(tmp_path) == []
