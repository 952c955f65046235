"""Idle costs nothing: no heavy import, no process, no file."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.harness.project import Project

HEAVY = ("pandas", "numpy", "torch", "ttnn", "sqlite3", "filelock", "msgspec", "tomllib")

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
    base = ["pytest_ttnn_perf.core", "pytest_ttnn_perf.core.options"]
    expected = ["pytest_ttnn_perf", *base]
    expected += ["pytest_ttnn_perf.plugin", "pytest_ttnn_perf.plugin.hookspecs"]
    assert f"REPORT True [] [] {expected}" in ran.text
    assert project.files() == before


#: Asks every command for its help, and prints what must not be loaded for that.
ALL_HELP = """
import contextlib, io, sys
from pytest_ttnn_perf.cli.main import _COMMANDS as COMMANDS, main
for command in ("", *COMMANDS):
    with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
        main([*command.split(), "--help"])
print(len(COMMANDS) > 20, sorted({"numpy", "pandas", "sqlalchemy", "jinja2"} & sys.modules.keys()))
"""


def test_help_loads_no_library() -> None:
    command = [sys.executable, "-c", ALL_HELP]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True []"


#: Lists our modules that a gated run loaded, without those that Python's own loader has loaded.
GATED_RUN = """
import sys, pytest
code = pytest.main(["-q", "-p", "no:cacheprovider", "--ttnn-perf", "--ttnn-perf-missing=ignore"])
ours = [m for name, m in sys.modules.items() if name.startswith("pytest_ttnn_perf.")]
rewritten = [m.__name__ for m in ours if type(m.__spec__.loader).__name__ != "SourceFileLoader"]
print("REPORT", code == 0, len(ours) > 40, rewritten)
"""


def test_pytest_rewrites_only_the_entry_point(project: Project) -> None:
    project.write(test_marked="def test_marked(ttnn_perf): ttnn_perf.record('latency', 1.0)")
    ran = project.run(sys.executable, "-B", "-c", GATED_RUN)
    assert "REPORT True True ['pytest_ttnn_perf.plugin']" in ran.text
