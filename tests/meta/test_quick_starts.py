"""Processes that are forked from a template come to what real ones come to."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.harness.project import clean
from tests.harness.quick_starts import REAL

if TYPE_CHECKING:
    from tests.harness.project import Project

#: What a process finds of itself, but for its own number and when it was started.
FINDINGS = """
    import json, os, stat, sys, tempfile, time
    from pathlib import Path

    def kind(number):
        return stat.S_IFMT(os.fstat(number).st_mode)

    STREAMS = sys.__stdin__, sys.__stdout__, sys.__stderr__
    FOUND = {
        "argv": sys.argv[1:],
        "program": os.path.basename(sys.argv[0]),
        "path": sys.path,
        "folder": os.getcwd(),
        "variables": {n: v for n, v in os.environ.items() if n != "TTNN_PERF_TEST_STARTS"},
        "streams": [(s.name, s.encoding, s.errors, s.line_buffering, s.isatty()) for s in STREAMS],
        "files": [kind(number) for number in (0, 1, 2)],
        "bytecode": sys.dont_write_bytecode,
        "temporary": tempfile.gettempdir(),
        "zone": time.tzname,
        "leads": os.getsid(0) == os.getpid(),
        "parent": os.getppid(),
    }
    role = os.environ.get("TTNN_PERF_ROLE", "orchestrator")
    Path(role + ".json").write_text(json.dumps(FOUND))
"""
TESTS = """
    import os, signal, pytest

    def test_slower(ttnn_perf):
        print("printed by a test")
        ttnn_perf.record("latency", float(open("latency").read()), unit="ms")

    def test_wrong():
        assert 1 + 1 == 3

    def test_dies():
        os.kill(os.getpid(), signal.SIGSEGV)
"""


def start(project: Project, how: str, *words: str, **variables: str) -> tuple[int, str, str]:
    """Start Python for real, or quickly."""
    done = subprocess.run(
        [sys.executable, *words], cwd=project.path, capture_output=True, text=True, check=False,
        env={**os.environ, "TZ": "Asia/Tokyo", "TMPDIR": str(project.path), REAL: how, **variables},
        timeout=300, start_new_session=True,
    )  # fmt: skip
    threads = re.sub("0x[0-9a-f]+", "0xADDRESS", done.stdout)
    return done.returncode, clean(threads), clean(done.stderr)


def test_a_process_finds_the_same_of_itself(project: Project) -> None:
    project.write(conftest=FINDINGS, test_model="def test_a(ttnn_perf): pass")
    (project.path / "more").mkdir()
    found: dict[str, list[Any]] = {}
    for how in ("real", "quick"):
        words = ("-m", "pytest", "-q", "--ttnn-perf", "--ttnn-perf-isolate=process")
        started = start(project, how, *words, PYTHONPATH=f"more{os.pathsep}{project.path}")
        roles = [json.loads(file.read_text()) for file in sorted(project.path.glob("*.json"))]
        found[how] = [started, *roles]

    real, quick = found["real"], found["quick"]
    assert len(real) == 3
    assert quick[1]["parent"] == os.getpid()
    for each in (*real[1:], *quick[1:]):
        del each["parent"]
    assert _without_the_run(quick) == _without_the_run(real)


def _without_the_run(found: list[Any]) -> Any:
    """Leave out the folders of a run, which have its name."""
    return json.loads(clean(json.dumps(found)))


@pytest.mark.parametrize("command", ["pytest", "ttnn-perf"])
def test_a_command_ends_in_the_same_way(project: Project, command: str) -> None:
    project.write(test_model=TESTS)
    (project.path / "latency").write_text("1")
    gate = ("--ttnn-perf-isolate=process", "--ttnn-perf-confirm=0", "-p", "no:cacheprovider")
    store = start(project, "real", "-m", "pytest", *gate, "--ttnn-perf-update=new", "-k", "slower")
    assert store[0] == 0
    (project.path / "latency").write_text("2")
    if command == "pytest":
        words = ["-m", "pytest", "--ttnn-perf", "-rA", *gate]
    else:
        words = [str(Path(sys.executable).with_name(command)), "baseline", "list"]

    real = start(project, "real", *words)

    assert start(project, "quick", *words) == real
    assert real[0] == (1 if command == "pytest" else 0)


def test_a_module_of_the_project_in_the_place_of_one_that_is_imported(project: Project) -> None:
    project.write(shlex="raise SystemExit('of the project')")

    assert start(project, "quick", "-m", "pytest") == (1, "", "of the project")


def test_it_is_a_child_like_any_other(project: Project) -> None:
    project.write(
        test_model="import time\ndef test_a():\n    print('on', flush=True)\n    time.sleep(600)"
    )
    words = [sys.executable, "-m", "pytest", "-s"]

    with subprocess.Popen(
        words, cwd=project.path, stdout=subprocess.PIPE, text=True, start_new_session=True,
        env={**os.environ, REAL: "quick"},
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert any("on" in line for line in process.stdout)
        assert process.poll() is None
        os.killpg(process.pid, signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
