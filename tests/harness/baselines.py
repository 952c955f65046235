"""Baselines and run records written by hand, and ``ttnn-perf`` as a function, in one process."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_ttnn_perf.core.baseline import Acceptance, MetricBaseline, Session, TestBaseline
from pytest_ttnn_perf.core.hardware import Hardware
from pytest_ttnn_perf.core.metric import Kind, Metric
from pytest_ttnn_perf.core.ops import OpGroup, OpGroups, Signature, Tensor
from pytest_ttnn_perf.gate.store import BaselineStore
from tests.harness.project import Ran, run_command

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_ttnn_perf.gate.store import Change

N150 = Hardware("wormhole_b0", "n150", "1x1")
T3K = Hardware("wormhole_b0", "t3k", "2x4")
FIRST = Acceptance("2026-11-15T10:00:00Z", "abc1234", "first", "0.81.1")


def ops(*codes: str) -> OpGroups:
    """Return an op table with one op of each code, a microsecond each."""
    tensor = Tensor((1, 1, 32, 32), None, "TILE", "BFLOAT16", "L1")
    groups = tuple(
        OpGroup(Signature(code, (tensor,)), 64, "HiFi2", "", 1, 1000.0, 1000.0)
        for code in sorted(codes)
    )
    return OpGroups("DEVICE KERNEL DURATION [ns]", groups)


def times(*medians_ms: float, name: str = "latency", since: int = 0) -> MetricBaseline:
    """Return a stored time with one session per median, each of a run of its own."""
    sessions = tuple(
        Session(median, median / 1000, 10, f"night-{number}")
        for number, median in enumerate(medians_ms, start=1)
    )
    return MetricBaseline(Metric(name, "ms", kind=Kind.TIME), sessions, since)


def stored(
    *metrics: MetricBaseline,
    accepted: Acceptance = FIRST,
    table: OpGroups | None = None,
    **configuration: Any,
) -> TestBaseline:
    """Return a stored test."""
    by_name = {each.metric.name: each for each in metrics}
    return TestBaseline(accepted, by_name, configuration, op_table=table)


@dataclass(slots=True)
class Desk:
    """A project's folder in which baselines are lived with; it is the current one."""

    path: Path
    commit: str | None = "abc1234"
    _count: int = field(default=0)

    @property
    def root(self) -> Path:
        """The folder of baselines."""
        return self.path / "baselines"

    def store(self, test: str, baseline: TestBaseline, hardware: Hardware = N150) -> None:
        """Store the baseline of a test."""
        change: Change = lambda _: baseline  # noqa: E731 (a change is a function)
        BaselineStore(self.root).amend_keys({hardware: {test: change}})

    def find(self, test: str, hardware: Hardware = N150) -> TestBaseline | None:
        """Return what is stored of a test."""
        return BaselineStore(self.root).find(hardware, test)

    def sessions(self, test: str, metric: str = "latency") -> list[float]:
        """Return the medians that are stored of a metric."""
        baseline = self.find(test)
        return [each.median for each in baseline.metrics[metric].sessions] if baseline else []

    def record(self, name: str = "run.json", /, *, tests: dict[str, Any], **top: Any) -> Path:
        """Write a run record; a list of numbers stands for a test with that latency."""
        self._count += 1
        document = {
            "format": 1,
            "id": f"run-{self._count}",
            "hardware": {"arch": "wormhole_b0", "board": "n150", "mesh": "1x1"},
            "environment": {"commit": self.commit, "python": "CPython 3.12.1"},
            "tests": {test: _test(content) for test, content in tests.items()},
            **top,
        }
        file = self.path / name
        file.write_text(json.dumps(document))
        return file

    def run(self, *arguments: str | Path) -> Ran:
        """Run a command of ``ttnn-perf baseline``; what it does not catch fails the test."""
        ran = run_command("baseline", *arguments)
        return Ran(ran.code, ran.text.rstrip("\n"), ran.errors.rstrip("\n"))

    def files(self) -> dict[str, str]:
        """Return the files of the baselines with their content, but for lock and ignore file."""
        return {
            str(file.relative_to(self.root)): file.read_text()
            for file in sorted(self.root.rglob("*"))
            if file.is_file() and file.name not in {".lock", ".gitignore"}
        }


def _test(content: Any) -> dict[str, Any]:
    if isinstance(content, list):
        return {"metrics": {"latency": {"unit": "ms", "samples": content}}}
    assert isinstance(content, dict)
    return content


def timed(samples: list[Any], *again: list[Any], **more: Any) -> dict[str, Any]:
    """Return a test of a record with one latency, and what was measured again."""
    metric = {"unit": "ms", "samples": samples, "confirmations": list(again)}
    return {"metrics": {"latency": metric}, **more}
