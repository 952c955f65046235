"""Idle costs nothing; a gated run imports what it needs, and no more."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

    from tests.harness.project import Project

#: Modules, without packages, which are folders; and records that both processes load. They only go
#: down: a record stands for something that is named in the field, not for what a function returns.
ORCHESTRATOR, WORKER, RECORDS = 43, 32, 72
RULES = "pytest_ttnn_perf.analysis.rules."
#: Rooms of the orchestrator, and the modules in them that a worker may use as well.
JUDGING = ("pytest_ttnn_perf.gate.", "pytest_ttnn_perf.report.")
SHARED = {"pytest_ttnn_perf.gate.rules_on_numbers", "pytest_ttnn_perf.report.tables"}
#: Writes what each process of the run has imported when it ends; the worker is the second one.
CONFTEST = """
import atexit, itertools, json, os, sys, time
# A busy machine must not make a suspect: its words would be imported.
time.perf_counter_ns = itertools.count(0, 1_000_000).__next__
role = "worker" if "LISTED" in os.environ else "orchestrator"
os.environ["LISTED"] = "yes"
def write():
    fields = ("__struct_fields__", "_fields", "__dataclass_fields__")
    ours = {
        name: [
            f"{name}.{key}" for key, each in vars(module).items()
            if isinstance(each, type) and each.__module__ == name
            and any(hasattr(each, field) for field in fields)
        ]
        for name, module in sorted(sys.modules.items())
        if name.startswith("pytest_ttnn_perf") and not hasattr(module, "__path__")
    }
    with open(role + ".json", "w") as file:
        json.dump(ours, file)
atexit.register(write)
"""
TESTS = """
def test_a(ttnn_perf): ttnn_perf.measure(int)
def test_b(ttnn_perf): ttnn_perf.measure(int)
def test_c(ttnn_perf): ttnn_perf.measure(int)
"""


def imported(project: Project, checklist: str) -> dict[str, dict[str, list[str]]]:
    """Return modules and records of ours in each process of a run against stored baselines."""
    plugin = ("-p", "pytest_ttnn_perf.plugin", "--ttnn-perf", "--ttnn-perf-confirm=0")
    words = (sys.executable, "-m", "pytest", *plugin, "--ttnn-perf-isolate=process")
    if not (project.path / "baselines").exists():
        project.write(conftest=CONFTEST, test_model=TESTS)
        assert project.run(*words, "--ttnn-perf-update=new").code == 0
    ran = project.run(*words, f"--ttnn-perf-checklist={checklist}")
    assert ran.code == 0, ran.text
    roles = ("orchestrator", "worker")
    return {role: json.loads((project.path / f"{role}.json").read_text()) for role in roles}


def test_modules_of_ours_in_a_gated_run(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # other plugins do as they like
    monkeypatch.delenv("PYTEST_PLUGINS", raising=False)
    for checklist in ("enforce", "off"):
        found = imported(project, checklist)
        orchestrator, worker = found["orchestrator"], found["worker"]

        assert len(orchestrator) <= ORCHESTRATOR, orchestrator
        assert not [name for name in orchestrator if name.startswith(RULES)]
        assert len(worker) <= WORKER, worker
        assert any(name.startswith(RULES) for name in worker) is (checklist == "enforce")
        records = {each for names in (*orchestrator.values(), *worker.values()) for each in names}
        assert 0 < len(records) <= RECORDS, sorted(records)
        assert {name for name in worker if name.startswith(JUDGING)} <= SHARED


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


def test_an_idle_run_starts_no_process_and_writes_no_file(project: Project) -> None:
    project.write(test_plain="def test_plain(): pass")
    before = project.files()
    ran = project.run(sys.executable, "-B", "-c", IDLE_RUN)
    base = ["pytest_ttnn_perf.core", "pytest_ttnn_perf.core.options"]
    expected = ["pytest_ttnn_perf", *base]
    expected += ["pytest_ttnn_perf.plugin"]
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
