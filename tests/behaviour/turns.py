"""A user's tests that record other numbers each time they run, in whatever process."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.behaviour.model import metric

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.harness.project import Project

    #: What a test records when it runs, by metric; or a statement that it executes instead.
    Turn = dict[str, dict[str, object]] | str

_SOURCE = """
    import json
    import os
    import signal
    import time
    from pathlib import Path

    import pytest

    TURNS = json.loads(Path(__file__).with_name("turns.json").read_text())

    def turn_of(name):
        file = Path(__file__).with_name(f"{name}.turn")
        number = int(file.read_text()) if file.exists() else 0
        file.write_text(str(number + 1))
        return TURNS[name][min(number, len(TURNS[name]) - 1)]

    @pytest.mark.ttnn_perf
    @pytest.mark.parametrize("name", list(TURNS))
    def test_model(ttnn_perf, name):
        turn = turn_of(name)
        if isinstance(turn, str):
            exec(turn)
        else:
            for metric, arguments in turn.items():
                ttnn_perf.record(metric, **arguments)
"""
#: Runs tests in workers, and suspects in two more.
IN_WORKERS = ("--ttnn-perf-isolate", "process", "--ttnn-perf-confirm", "2")


def write_turns(project: Project, **tests: Sequence[Turn]) -> None:
    """Write a test per keyword: what it does when it runs first, second, ...; then as the last.

    They start anew from here.
    """
    project.write(test_model=_SOURCE)
    (project.path / "turns.json").write_text(json.dumps(tests))
    for name in tests:
        (project.path / f"{name}.turn").unlink(missing_ok=True)


def latencies(*milliseconds: float) -> list[Turn]:
    """Return the turns of a test that records one time, with one sample each."""
    return [{"latency": metric(each)} for each in milliseconds]


def id_of(name: str) -> str:
    """Return the nodeid of a test."""
    return f"test_model.py::test_model[{name}]"
