"""Idle costs nothing: no heavy import, no process, no file."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.harness.project import Project

HEAVY = ("pandas", "numpy", "torch", "ttnn", "sqlite3", "filelock", "tabulate", "tomllib")

#: Runs pytest in a child and prints what it must not do: heavy modules loaded, processes started.
IDLE_RUN = f"""
import sys
events = []
def watch(event, args):
    if event in ("subprocess.Popen", "os.posix_spawn", "os.fork", "os.exec"):
        events.append(event)
sys.addaudithook(watch)
import os, pytest
os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # other plugins do as they like
code = pytest.main(["-q", "-p", "no:cacheprovider", "-p", "pytest_ttnn_perf.plugin"])
ours = sorted(m for m in sys.modules if m.startswith("pytest_ttnn_perf"))
heavy = [m for m in {HEAVY!r} if m in sys.modules]
print("REPORT", code == 0, heavy, events, ours)
"""


def test_importing_the_plugin_loads_nothing_heavy() -> None:
    code = f"import sys, pytest_ttnn_perf.plugin; print([m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_an_idle_run_starts_no_process_and_writes_no_file(project: Project) -> None:
    project.write(test_plain="def test_plain(): pass")
    before = project.files()
    ran = project.run(sys.executable, "-B", "-c", IDLE_RUN)
    own = ("plugin", "plugin.hookspecs", "plugin.options")
    expected = ["pytest_ttnn_perf", *(f"pytest_ttnn_perf.{name}" for name in own)]
    assert f"REPORT True [] [] {expected}" in ran.text
    assert project.files() == before


def test_the_command_line_loads_no_pandas() -> None:
    code = "import sys, pytest_ttnn_perf.cli.main; print('pandas' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
