"""A gated run imports what it needs: modules and records of ours in orchestrator and worker."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.harness.project import Project

#: Modules, without packages, which are folders; and records that both processes load. They only go
#: down: a record stands for something that is named in the field, not for what a function returns.
ORCHESTRATOR, WORKER, RECORDS = 43, 36, 94
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


def imported(project: Project, *options: str) -> dict[str, dict[str, list[str]]]:
    """Return modules and records of ours in each process of a run against stored baselines."""
    project.write(conftest=CONFTEST, test_model=TESTS)
    plugin = ("-p", "pytest_ttnn_perf.plugin", "--ttnn-perf", "--ttnn-perf-confirm=0")
    words = (sys.executable, "-m", "pytest", *plugin, "--ttnn-perf-isolate=process", *options)
    stored = project.run(*words, "--ttnn-perf-update=new")
    assert stored.code == 0, stored.text
    ran = project.run(*words)
    assert ran.code == 0, ran.text
    roles = ("orchestrator", "worker")
    return {role: json.loads((project.path / f"{role}.json").read_text()) for role in roles}


@pytest.mark.parametrize("checklist", ["enforce", "off"])
def test_modules_of_ours_in_a_gated_run(
    project: Project, monkeypatch: pytest.MonkeyPatch, checklist: str
) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # other plugins do as they like
    monkeypatch.delenv("PYTEST_PLUGINS", raising=False)
    found = imported(project, f"--ttnn-perf-checklist={checklist}")

    assert len(found["orchestrator"]) <= ORCHESTRATOR, found["orchestrator"]
    assert not [name for name in found["orchestrator"] if name.startswith(RULES)]
    assert len(found["worker"]) <= WORKER, found["worker"]
    if checklist == "off":
        assert not [name for name in found["worker"] if name.startswith(RULES)]
    records = {each for modules in found.values() for names in modules.values() for each in names}
    assert 0 < len(records) <= RECORDS, sorted(records)
    judging = {name for name in found["worker"] if name.startswith(JUDGING)}
    assert judging <= SHARED
