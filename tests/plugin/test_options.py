"""Options of the gate, each with its twin in a configuration file: what they change, and refuse."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.behaviour.findings import ERROR, WARNING, checklist_of
from tests.behaviour.findings import write_model as write_found
from tests.behaviour.model import (
    configure,
    counts_of,
    entry_of,
    failure_of,
    outcomes,
    record_of,
    refusal_of,
    write_latency,
)
from tests.device.rig import CONFTEST, MODELS, UPDATE, Rig, play, said
from tests.device.script import Fault
from tests.harness.project import QUICK, Ran, clean

if TYPE_CHECKING:
    from pathlib import Path

    from tests.harness.project import Project

BOTH, ONE = {"TTP701", "TTP902"}, {"TTP902"}
#: Options, how a new test that breaks two rules ends, and what is found of it.
CHECKLIST: tuple[tuple[list[str], str, set[str]], ...] = (
    ([], "1 failed", BOTH),
    (["--ttnn-perf-checklist=report"], "1 passed", BOTH),
    (["--ttnn-perf-checklist", "off"], "1 passed", set()),
    (["--ttnn-perf-select=TTP7, ttp902", "--ttnn-perf-ignore=TTP701"], "1 passed", ONE),
)


@pytest.mark.parametrize(("options", "counts", "found"), CHECKLIST)
def test_the_checklist_is_asked_and_enforced_as_set(
    project: Project, options: list[str], counts: str, found: set[str]
) -> None:
    write_found(project)

    ran = project.pytest("--ttnn-perf-update=new", *options)

    assert counts_of(ran) == counts
    assert {finding["code"] for finding in entry_of(project)["findings"]} >= found
    assert ("TTP701" in ran.text, "TTP902" in ran.text) == ("TTP701" in found, "TTP902" in found)
    assert (project.path / "baselines").exists() == (counts == "1 passed")


def test_the_option_wins_over_the_configuration(project: Project) -> None:
    write_found(project)
    configure(project, 'ignore = ["TTP701"]', 'checklist = "report"')
    ran = project.pytest(
        "--ttnn-perf", "--ttnn-perf-ignore=TTP1", "--ttnn-perf-checklist=enforce", "-v"
    )
    assert failure_of(ran).splitlines()[:3] == [
        ERROR,
        "    fix: Use a batch that is a multiple of the number of devices that share it.",
        "    see: ttnn-perf rules TTP701",
    ]
    assert checklist_of(ran)[0].endswith(WARNING)


#: What cannot be meant.
REFUSED = (
    (["--ttnn-perf-update", "test_model.py"],
     "argument --ttnn-perf-update: expected one of new, improved, all, found 'test_model.py'; "
     "did you mean --ttnn-perf-update=improved test_model.py"),
    (["--ttnn-perf-update=all", "--ttnn-perf-reason=  "],
     '--ttnn-perf-update=all needs --ttnn-perf-reason "why the change is right"'),
    (["--ttnn-perf-reason", "more layers"],
     "--ttnn-perf-reason explains an update, and nothing is written without one: "
     "add --ttnn-perf-update, or leave it out"),
    (["--ttnn-perf-ignore", "TTP"],
     "ignore: TTP leaves no rule; to do without the checklist, use --ttnn-perf-checklist off"),
    (["--pdb", "--ttnn-perf-isolate=process"],
     "--pdb works in this process only: use --ttnn-perf-isolate inline"),
    (["--ttnn-perf-artifacts=numbers.json/out"],
     "HERE/numbers.json/out: cannot write: Not a directory"),
    (["--ttnn-perf-update=new", "--ttnn-perf-baselines=numbers.json/out"],
     "HERE/numbers.json/out: cannot write: Not a directory"),
    (["--ttnn-perf-baselines=numbers.json"],
     "HERE/numbers.json: expected a folder, found a file"),
    (["--ttnn-perf-replay=nowhere"],
     "HERE/nowhere: expected a folder of recorded artifacts, found nothing"),
    (["--ttnn-perf-benchmark-json=numbers.json"],
     "HERE/numbers.json: expected a folder, found a file"),
    (["--ttnn-perf-html=numbers.json/page.html"],
     "HERE/numbers.json: cannot write: Not a directory"),
    (["--ttnn-perf-json=folder"],
     "HERE/folder: expected a file, found a folder"),
)  # fmt: skip


@pytest.mark.parametrize(("options", "message"), REFUSED, ids=lambda value: str(value)[:40])
def test_what_cannot_be_meant_is_refused_before_any_test(
    project: Project, options: list[str], message: str
) -> None:
    write_latency(project, 12.5)
    (project.path / "folder").mkdir()
    before = project.files()
    ran = project.pytest("--ttnn-perf", *options)
    assert refusal_of(ran) == message.replace("HERE", str(project.path))
    assert project.files() == before


#: What turns the gate on, how the one test without a baseline ends, and what is left unsaid.
SWITCHES: tuple[tuple[list[str], str, str | None], ...] = (
    (["--ttnn-perf"], "", "1 failed"),
    (["--ttnn-perf-all"], "", "1 failed"),
    (["--ttnn-perf-update=new"], "", "1 passed"),
    ([], "enabled = true", "1 failed"),
    (["--ttnn-perf"], "enabled = false", "1 failed"),
    ([], "enabled = false", None),
)


@pytest.mark.parametrize(("options", "settings", "counts"), SWITCHES)
def test_the_gate_is_on_if_an_option_or_enabled_says_so(
    project: Project, options: list[str], settings: str, counts: str | None
) -> None:
    write_latency(project, 12.5)
    configure(project, settings)
    before = project.files()
    ran = project.pytest(*options)
    assert counts_of(ran) == (counts or "1 passed")
    assert ("\nttnn-perf: gate on, key host-ARCH, " in ran.text) == (counts is not None)
    if counts is None:
        assert "ttnn-perf" not in ran.text
        assert project.files() == before


@pytest.mark.parametrize(
    ("missing", "passes", "said"),
    [("fail", False, True), ("warn", True, True), ("ignore", True, False)],
)
def test_a_test_without_a_baseline(
    project: Project, missing: str, passes: bool, said: bool
) -> None:
    write_latency(project, 12.5)
    ran = project.pytest("--ttnn-perf", f"--ttnn-perf-missing={missing}")
    assert counts_of(ran) == ("1 passed" if passes else "1 failed")
    assert outcomes(project) == {"latency": "NO_BASELINE"}
    assert "metrics: 1 NO_BASELINE" in ran.text
    assert ("new test, nothing to compare with" in ran.text) is said


PLAIN = """
    import pytest

    def test_plain(): pass

    @pytest.mark.models_perf
    def test_foreign(): pass

    @pytest.mark.ttnn_perf
    def test_marked(): pass
"""
#: What is measured, and what of that is judged; None: all of it.
MEASURED = (
    (["--ttnn-perf"], "", ["marked"], ["marked"]),
    (["--ttnn-perf-all"], "", ["plain", "foreign", "marked"], ["marked"]),
    (["--ttnn-perf"], "all = true", ["plain", "foreign", "marked"], ["marked"]),
    (["--ttnn-perf-all"], "gate_call_time = true", ["plain", "foreign", "marked"], None),
    (["--ttnn-perf"], 'markers = ["other", "models_perf"]', ["foreign", "marked"], None),
)


@pytest.mark.parametrize(("options", "settings", "measured", "failed"), MEASURED)
def test_tests_that_know_nothing_of_us_are_measured_as_asked(
    project: Project, options: list[str], settings: str, measured: list[str],
    failed: list[str] | None,
) -> None:  # fmt: skip
    (project.path / "pytest.ini").write_text("[pytest]\nmarkers = models_perf\n")
    configure(project, settings)
    project.write(test_model=PLAIN)
    project.pytest(*options)
    tests = record_of(project)["tests"]
    assert list(tests) == [f"test_model.py::test_{name}" for name in measured]
    wanted = measured if failed is None else failed
    judged = [name for name, test in tests.items() if test["verdicts"]]
    assert judged == [f"test_model.py::test_{name}" for name in wanted]


def test_the_artifacts_ignore_themselves_and_hold_one_record_a_run(project: Project) -> None:
    write_latency(project, 12.5)
    project.run("git", "init", "-q")
    for folder in (".ttnn_perf", "out/deep"):
        ran = project.pytest("--ttnn-perf", f"--ttnn-perf-artifacts={folder}")
        assert f"record: {folder}/runs/RUN-ID.json" in ran.text.splitlines()
        assert (project.path / folder / ".gitignore").read_text() == "*\n"
        kept = [file for file in project.files() if file.startswith(f"{folder}/")]
        assert len(kept) == 2
    untracked = project.run("git", "ls-files", "--others", "--exclude-standard").text
    assert set(untracked.splitlines()) == {"test_model.py", "numbers.json"}
    (project.path / "out/deep/.gitignore").write_text("runs/\n")
    project.pytest("--ttnn-perf", "--ttnn-perf-artifacts=out/deep")
    assert (project.path / "out/deep/.gitignore").read_text() == "runs/\n", "of the user's own"


MODULE = """
    import os

    def note(what):
        with open("pids", "a") as stream:
            print(what, os.getpid(), file=stream)

    note("imported")

    def test_model(ttnn_perf):
        note("ran")
        ttnn_perf.record("latency", 10.0, unit="ms")
"""
HERE = {("imported", "here"), ("ran", "here")}
ELSEWHERE = {("imported", "elsewhere"), ("ran", "elsewhere")}


def gate(project: Project, *arguments: str) -> Ran:
    """Run the gate without the isolation that the harness asks for; here is the orchestrator."""
    options = (*QUICK, "--ttnn-perf", "--ttnn-perf-missing=ignore", "--ttnn-perf-confirm=0")
    result = project.pytester.runpytest_inprocess(*options, *arguments)
    return Ran(int(result.ret), clean("\n".join(result.outlines)), "\n".join(result.errlines))


@pytest.mark.parametrize(
    ("options", "settings", "expected"),
    [
        ([], "", ELSEWHERE),
        ([], 'isolate = "inline"', HERE),
        (["--pdb"], "", HERE),
        (["--collect-only"], "", {("imported", "here")}),
    ],
)
def test_tests_are_imported_and_run_where_asked(
    project: Project, options: list[str], settings: str, expected: set[tuple[str, str]]
) -> None:
    """A conftest at the top is read here too, as in any pytest: it may declare options."""
    configure(project, settings)
    project.write(
        **{
            "models/conftest": "def pytest_configure(): open('beside', 'w').close()",
            "models/test_model": MODULE,
        }
    )
    ran = gate(project, *options)
    assert ran.code == 0, ran.text
    noted = [line.split() for line in (project.path / "pids").read_text().splitlines()]
    own = str(os.getpid())
    assert {(what, "here" if pid == own else "elsewhere") for what, pid in noted} == expected
    assert project.files() >= {"models/test_model.py"}


def test_a_debugger_that_has_nobody_to_talk_to_says_where_it_has(project: Project) -> None:
    # As a debugger ends that reads from nowhere.
    project.write(test_model="import bdb\ndef test_model(): raise bdb.BdbQuit")
    hint = "a debugger works with --ttnn-perf-isolate inline, or --pdb"
    assert gate(project).text.count(hint) == 1


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path).write(conftest=CONFTEST, test_models=MODELS)


#: The first process to have the chip dies with it.
CRASH = play(faults=(Fault(kind="segfault", number=3, processes=(0,)),))
WALL = (
    "--ttnn-perf", "--ttnn-perf-missing=ignore", "--ttnn-perf-confirm=0", "--ttnn-perf-passes=wall",
)  # fmt: skip


def test_a_device_that_a_worker_left_is_reset(rig: Rig) -> None:
    # The first worker that dies had none: it left nothing to be reset.
    rig.write(test_host="import os\ndef test_host(ttnn_perf):\n    os.abort()")
    (rig.project / "ttnn_perf.toml").write_text("reset = \"echo 'the file' >> reset\"\n")
    ran = rig.pytest(CRASH, *WALL)
    assert (ran.code, counts_of(ran)) == (1, "2 failed, 1 passed")
    assert said(ran)[-1] == "ttnn-perf: resetting the device: echo 'the file' >> reset"
    assert (rig.project / "reset").read_text() == "the file\n"
    assert rig.workers() == ["2-wall", "3-wall"]


UNKNOWN = "not known whether ttnn can profile: it did not answer within 1 s; set preflight_timeout"
HOST = """
    import pytest

    @pytest.mark.ttnn_perf
    def test_host(ttnn_perf):
        ttnn_perf.record("latency", [10.0] * 3, unit="ms")
"""


def test_a_ttnn_that_never_answers_costs_baselines_of_devices_only(rig: Rig) -> None:
    rig.write(test_host=HOST)
    (rig.project / "ttnn_perf.toml").write_text("preflight_timeout = 1\n")
    ran = rig.pytest(play(mute=True), *UPDATE, "--ttnn-perf-isolate=inline")
    assert said(ran)[0].endswith(f", profiler off ({UNKNOWN})")
    assert (ran.code, counts_of(ran)) == (1, "2 failed, 1 passed")
    no_times = f"NO_DATA: device_kernel_time has no samples: device pass: {UNKNOWN}"
    assert ran.text.splitlines().count(no_times) == 2
    stored = sorted(file.name for file in (rig.project / "baselines").rglob("*.json"))
    assert stored == ["test_host.json"], "which opens no device"
