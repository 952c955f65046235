"""Runs whose tests run in workers, and what became of these."""

from __future__ import annotations

import json
import os
import re
import time
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.harness.project import Project, Ran

#: Long enough for any machine; only a run that would never end takes so long.
PATIENCE_S = 300.0
WORKERS = ("--ttnn-perf-isolate", "process", "--ttnn-perf-confirm", "0")
CONFIRMED = ("--ttnn-perf-isolate", "process", "--ttnn-perf-confirm", "2")
#: What tests of the projects use: how often something was done, in all processes together.
STEPS = """
    import os, signal, sys, time
    from pathlib import Path

    HERE = Path(__file__).parent

    def count(name):
        with (HERE / name).open("a") as file:
            file.write(f"{os.getpid()}\\n")
        return len((HERE / name).read_text().splitlines())

    def kill(number=signal.SIGKILL):
        os.kill(os.getpid(), number)
"""


def write_tests(project: Project, source: str, **files: str) -> None:
    """Write the tests, with a module ``steps`` for what they do."""
    project.write(steps=STEPS, test_model=source, **files)


def store(project: Project, *tests: str, latency: float = 1.0) -> None:
    """Store baselines of tests that record one latency, whatever they will do later."""
    lines = (
        f"def {test}(ttnn_perf): ttnn_perf.record('latency', [{latency}] * 3, unit='ms')"
        for test in tests
    )
    project.write(test_model="\n".join(lines))
    assert project.pytest("--ttnn-perf-update=new").code == 0


def run(project: Project, *arguments: str) -> Ran:
    """Run the tests in workers, without confirm passes unless asked for."""
    # What workers print with -s goes past sys.stdout, and is seen from outside only.
    pytest = project.pytest_process if "-s" in arguments else project.pytest
    return pytest("--ttnn-perf", "--ttnn-perf-missing=warn", *WORKERS, *arguments)


def told(text: str, project: Project) -> str:
    """Return a text without the folder of the project and the digits of addresses."""
    text = text.replace(str(project.path), "HERE")
    return re.sub(r"0x[0-9a-f]+", "0xADDRESS", text)


def entry_of(record: dict[str, Any], name: str) -> dict[str, Any]:
    """Return what a record says of one test of ``test_model.py``."""
    found = record["tests"][f"test_model.py::{name}"]
    assert isinstance(found, dict)
    return found


def outcome_of(record: dict[str, Any], name: str) -> str:
    """Return the outcome of a test with one verdict."""
    (verdict,) = entry_of(record, name)["verdicts"].values()
    return str(verdict["outcome"])


def the_record(project: Project) -> dict[str, Any]:
    """Return the one record that there is beside that of the stored baselines."""
    files = sorted((project.path / ".ttnn_perf" / "runs").glob("*.json"), key=_age)
    record = json.loads(files[-1].read_text())
    assert isinstance(record, dict)
    return record


def _age(file: Path) -> int:
    return file.stat().st_mtime_ns


def junit_counts(file: Path) -> dict[str, int]:
    """Return how many tests a JUnit file counts, and how they ended."""
    (suite,) = ET.parse(file).getroot().iter("testsuite")
    return {name: int(suite.attrib[name]) for name in ("tests", "failures", "errors")}


def processes(project: Project, name: str) -> list[int]:
    """Return the processes that ``count(name)`` was called in, in order."""
    return [int(line) for line in (project.path / name).read_text().split()]


def logs(project: Project) -> list[str]:
    """Return the workers whose logs were kept, by number and pass."""
    folder = project.path / ".ttnn_perf" / "passes"
    return sorted(log.parent.name for log in folder.glob("*/*/worker.log"))


def is_running(pid: int) -> bool:
    """Return whether a process does anything still; one that nobody waited for does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        if Path("/proc/self/stat").exists():
            return False
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        return True
    return stat.rpartition(")")[2].split()[0] not in {"Z", "X"}


def eventually(condition: Callable[[], bool]) -> bool:
    """Wait until something is so; False if it never is."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def assert_gone(pids: list[int]) -> None:
    """Check that processes have ended, or do so now."""
    assert pids
    assert eventually(lambda: not any(map(is_running, pids))), pids
