"""A capture of one call: what it leaves, and that a capture that fails costs nothing else."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from pytest_ttnn_perf.measure.profilers import CapturedGraph, Runtime, captured_graph

FATAL = RuntimeError(
    "TT_FATAL @ graph.cpp:12: idle\ninfo:\nA capture is\nactive\nbacktrace:\n --- f"
)


class Mode(Enum):
    NORMAL = 0
    NO_DISPATCH = 1


@dataclass
class Graph:
    """The functions of ``ttnn.graph``: what was called, and what raises."""

    failing: dict[str, Exception] = field(default_factory=dict)
    writes: bool = True
    called: list[str] = field(default_factory=list)
    RunMode = Mode

    def _call(self, name: str, *arguments: object) -> None:
        self.called.append(" ".join([name, *map(str, arguments)]))
        if name in self.failing:
            raise self.failing[name]

    def begin_graph_capture(self, mode: Mode) -> None:
        self._call("begin", mode)

    def disable_python_io_recording(self) -> None:
        self._call("no python")

    def end_graph_capture(self) -> None:
        self._call("end")

    def end_graph_capture_to_file(self, file: str) -> None:
        self._call("end to", Path(file).name)
        Path(file).write_text("[]", encoding="utf-8")

    def import_report(self, file: str, folder: str) -> None:
        self._call("import", Path(file).name)
        if self.writes:
            (Path(folder) / "db.sqlite").write_text("", encoding="utf-8")


BEGUN = ["begin Mode.NORMAL", "no python"]
ENDED = [*BEGUN, "end to graph_capture.json", "import graph_capture.json"]


@pytest.fixture(autouse=True)
def without_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "torch", raising=False)


def runtime(graph: object) -> Runtime:
    ttnn: Any = ModuleType("ttnn")
    if graph is not None:
        ttnn.graph = graph
    return Runtime(ttnn)


def captured(graph: object, folder: Path) -> CapturedGraph:
    """Capture a model that does nothing; it must run once, whatever becomes of the capture."""
    ran = 0
    with captured_graph(runtime(graph), folder) as found:
        assert found.database is None
        ran += 1
    assert ran == 1
    return found


def test_a_capture_leaves_a_database_in_a_folder_of_its_own(tmp_path: Path) -> None:
    graph, folder = Graph(), tmp_path / "reports" / "test_model"
    assert captured(graph, folder) == CapturedGraph(folder / "db.sqlite")
    assert graph.called == ENDED
    assert sorted(file.name for file in folder.iterdir()) == ["db.sqlite", "graph_capture.json"]


@pytest.mark.parametrize(
    ("step", "calls"),
    [
        ("begin", BEGUN[:1]),
        ("no python", [*BEGUN, "end"]),
        ("end to", [*ENDED[:3], "end"]),
        ("import", ENDED),
    ],
    ids=["begins", "goes on", "ends", "imports"],
)
def test_a_capture_that_has_begun_ends_and_says_why_it_failed(
    tmp_path: Path, step: str, calls: list[str]
) -> None:
    graph = Graph({step: FATAL})
    assert captured(graph, tmp_path) == CapturedGraph(problem="RuntimeError: A capture is active")
    assert graph.called == calls
