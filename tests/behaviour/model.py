"""A user's model test that records numbers from a file: no verdict here depends on real time."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.harness.project import Project, Ran

#: The nodeid of the one test of the model.
MODEL = "test_model.py::test_model"

_SOURCE = """
    import json
    from pathlib import Path

    import pytest

    @pytest.mark.ttnn_perf
    def test_model(ttnn_perf):
        metrics = json.loads(Path(__file__).with_name("numbers.json").read_text())
        for name, metric in metrics.items():
            ttnn_perf.record(name, **metric)
"""


def metric(
    *samples: float, unit: str = "ms", kind: str = "time", better: str = "lower"
) -> dict[str, object]:
    """Return what the model records for one metric."""
    return {"value_or_samples": samples, "unit": unit, "kind": kind, "better": better}


def write_model(project: Project, **metrics: dict[str, object]) -> None:
    """Write the model, or change what it records from the next run on."""
    if not (project.path / "test_model.py").exists():
        project.write(test_model=_SOURCE)
    (project.path / "numbers.json").write_text(json.dumps(metrics))


def write_latency(project: Project, *milliseconds: float) -> None:
    """Write the model with one timing."""
    write_model(project, latency=metric(*milliseconds))


def configure(project: Project, *lines: str, file: str = "pyproject.toml") -> None:
    """Write settings into one of the configuration files."""
    heading = ["[tool.ttnn_perf]"] if file == "pyproject.toml" else []
    (project.path / file).write_text("\n".join([*heading, *lines, ""]))


def record_of(project: Project) -> dict[str, Any]:
    """Return the newest run record; ids alone do not order runs of one second."""
    files = (project.path / ".ttnn_perf" / "runs").glob("*.json")
    newest = max(files, key=lambda file: file.stat().st_mtime_ns)
    record = json.loads(newest.read_text())
    assert isinstance(record, dict)
    return record


def entry_of(project: Project, test: str = MODEL) -> dict[str, Any]:
    """Return what the newest record says of one test."""
    found = record_of(project)["tests"][test]
    assert isinstance(found, dict)
    return found


def outcomes(project: Project, test: str = MODEL) -> dict[str, str]:
    """Return the verdict of each metric of a test in the newest run."""
    return {name: v["outcome"] for name, v in entry_of(project, test)["verdicts"].items()}


def stored_metric(project: Project, name: str = "latency", test: str = "test_model") -> Any:
    """Return the stored baseline of one metric of ``test_model.py``."""
    return project.stored()[test]["metrics"][name]


def store_sessions(
    project: Project,
    *sessions: list[float],
    since: int = 0,
    test: str = "test_model",
    name: str = "latency",
) -> None:
    """Replace the stored sessions of one metric, as if that many runs had been kept."""
    file = project.baseline()
    document = json.loads(file.read_text())
    kept = [[*session, f"run-{number}"] for number, session in enumerate(sessions)]
    document["tests"][test]["metrics"][name].update(sessions=kept, since=since)
    file.write_text(json.dumps(document))


def failure_of(ran: Ran, test: str = "test_model") -> str:
    """Return the whole text that a test failed with."""
    _, found, rest = ran.text.partition(f"___ {test} ___\n")
    assert found, ran.text
    return re.split(r"\n(?:___ |===)", rest)[0]


def counts_of(ran: Ran) -> str:
    """Return the counts of pytest's last line: ``1 failed, 2 passed``."""
    return ran.text.splitlines()[-1].strip("= ").removesuffix(" in TIME")


def refusal_of(ran: Ran) -> str:
    """Return the message of a run that pytest refused as wrongly asked for."""
    assert ran.code == 4, ran.text + ran.errors
    # argparse starts its line with the name of the program.
    messages = re.findall(r"^(?:ERROR|\S+: error): (.*)$", ran.errors, flags=re.MULTILINE)
    return str(messages[-1])
