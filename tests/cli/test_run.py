"""What ``ttnn-perf run`` makes of scripts: what it refuses, runs, takes and gates."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from tests.harness.project import Project, Ran

KERNEL: Final = """
import os, sys
import ttl

@ttl.operation(grid=(2, 2))
def add():
    for name in ("TTLANG_PERF_DUMP", "TTLANG_AUTO_PROFILE", "TT_METAL_DEVICE_PROFILER"):
        print(name, os.environ.get(name))
    print(open("printed.txt").read())

def main():
    add()
    sys.exit(len(sys.argv) - 1)

if __name__ == "__main__":
    main()
"""
#: Stands in for tt-lang: an operation is a function.
TTL: Final = "def operation(**how):\n    return lambda kernel: kernel\n"
SUMMARY: Final = """
=== PERF SUMMARY ===
arch: wormhole_b0, freq: 1000 MHz, max_compute_cores: 64
programs: 1 (listed in dispatch order, includes ttnn ops)

--- Program 1024 (add) ---
grid: 8x8 (64 cores)
duration: 54,311 cycles (54.3 us)
  DRAM read:        512.0 KB  (256 transfers)
  DRAM write:       512.0 KB  (256 transfers)
"""
TEST: Final = "kernel.py::add"


@pytest.fixture
def kernel(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """Return a project whose kernel prints what tt-lang would."""
    logs = project.path / "metal" / "generated" / "profiler" / ".logs"
    logs.mkdir(parents=True)
    (logs / "noc_trace_dev0.json").write_text("{}")
    monkeypatch.setenv("TT_METAL_HOME", str(project.path / "metal"))
    for name, text in {"kernel.py": KERNEL, "ttl.py": TTL, "printed.txt": SUMMARY}.items():
        (project.path / name).write_text(text)
    return project


def run(project: Project, *words: str, profiler: str = "ttlang") -> Ran:
    command = words if "--" in words else (*words, "--", sys.executable, "kernel.py")
    options = ("--profiler", profiler, "--runs=1", "--ttnn-perf-confirm=0")
    return project.cli_process("run", *options, *command)


def test_a_kernel_is_recorded_gated_and_accepted(kernel: Project) -> None:
    ran = run(kernel, "--update=new", "--fact", "production_shape=8192x8192", "--fact", "m=64")
    assert (ran.code, ran.errors) == (0, "")
    # Live, with the variables of this pass and no other.
    assert "TTLANG_PERF_DUMP 1\nTTLANG_AUTO_PROFILE None\nTT_METAL_DEVICE_PROFILER 1" in ran.text
    assert not list((kernel.path / "metal").rglob("noc_trace_*"))
    (stored,) = kernel.stored("kernel.json").values()
    assert kernel.baseline("kernel.json").parent.name == "wormhole_b0-unknown-1x1"
    configuration = {"command": "kernel.py", "profiler": "ttlang", "clock_mhz": 1000.0, "m": 64}
    assert configuration.items() <= stored["configuration"].items()
    captures = kernel.records()[-1]["tests"][TEST]["attached"]
    assert SUMMARY.strip() in (kernel.path / captures[0]).read_text()

    (kernel.path / "printed.txt").write_text(SUMMARY.replace("256 transfers", "512 transfers"))
    facts = ("--fact", "production_shape=8192x8192", "--fact", "m=64")
    ran = run(kernel, *facts)
    assert ran.code == 1
    assert "REGRESSED kernel.py::add: kernel_dram_transfers " in ran.text
    record = max((kernel.path / ".ttnn_perf/runs").glob("*.json"))
    assert kernel.cli("baseline", "accept", str(record), "--reason", "why", "--", TEST).code == 0
    assert run(kernel, *facts).code == 0
    # Another size is another configuration, and never a regression.
    assert "NOT_COMPARABLE" in run(kernel, "--fact", "m=128").text


@pytest.mark.parametrize(
    ("printed", "arguments", "said"),
    [
        (SUMMARY, ("a", "b", "c"), "kernel.py ended with exit code 3"),
        ("nothing of interest", (), "the output has no PERF SUMMARY; see .ttnn_perf/captures/"),
        ("[perf_summary] WARNING: x", (), "the output has no PERF SUMMARY"),
    ],
    ids=["exit", "section", "warning"],
)
def test_a_script_that_fails_stores_nothing(
    kernel: Project, printed: str, arguments: tuple[str, ...], said: str
) -> None:
    (kernel.path / "printed.txt").write_text(printed)
    ran = run(kernel, "--update=new", "--", sys.executable, "kernel.py", *arguments)
    assert ran.code == 1
    assert said in ran.text
    assert not list(kernel.path.glob("baselines/*/*.json"))


def test_a_profile_by_lines_is_recorded_and_gates_nothing(kernel: Project) -> None:
    report = (
        f"{'=' * 100}\nTTLANG AUTO-PROFILE REPORT\n{'=' * 100}\n\nTotal operations: 1\n"
        "Longest thread: 2,106 cycles\n\n"
    )
    (kernel.path / "printed.txt").write_text(report)
    ran = run(kernel, profiler="lines")
    assert "TTLANG_PERF_DUMP None\nTTLANG_AUTO_PROFILE 1" in ran.text
    assert "kernel.py::add[lines]" in kernel.records()[-1]["tests"]
    # The report is cut, which is a problem of its own; a whole one ends with 0.
    assert (
        "auto_profile_cycles" in kernel.records()[-1]["tests"]["kernel.py::add[lines]"]["metrics"]
    )


def test_any_command_is_timed(project: Project) -> None:
    (project.path / "bench").write_text("#!/bin/sh\necho measuring\n")
    (project.path / "bench").chmod(0o755)
    words = ("--runs=3", "--format=json", "--", "./bench", "--size", "8")
    ran = run(project, "--update=new", *words, profiler="none")
    assert ran.code == 0
    assert ran.errors.count("measuring") == 4  # one to warm up
    assert [v["metric"] for v in json.loads(ran.text)["verdicts"]] == ["wall_time"]
    (stored,) = project.stored("bench%.json").values()
    assert stored["configuration"] == {"command": "./bench --size 8", "profiler": "none"}
    assert stored["metrics"]["wall_time"]["sessions"][0][2] == 3
    # No run of the suite meets it: it is not gone.
    project.write(test_model="def test_nothing(): pass")
    assert "without a test" not in project.pytest("--ttnn-perf").text


REFUSED: Final = {
    "TTLANG_AUTO_PROFILE": "1", "TT_METAL_WATCHER": "10", "TT_METAL_DPRINT_CORES": "all",
    "TT_METAL_PROFILER_DIR": "/x", "TT_METAL_STREAMING_PROFILER": "1", "TTLANG_COMPILE_ONLY": "1",
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_an_environment_that_spoils_a_profile_is_refused(
    kernel: Project, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, REFUSED[name])
    ran = kernel.cli("run", "--profiler=ttlang", "--", sys.executable, "kernel.py")
    assert (ran.code, ran.text) == (2, "")
    assert ran.errors.rstrip().endswith(f"unset {name}")


def test_what_tt_lang_needs_must_be_there(kernel: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("run", "--profiler=ttlang", "--", sys.executable, "kernel.py")
    monkeypatch.setenv("TT_METAL_HOME", str(kernel.path))
    assert "mkdir -p" in kernel.cli(*words).errors
    monkeypatch.delenv("TT_METAL_HOME")
    assert "TT_METAL_HOME is not set" in kernel.cli(*words).errors
    assert "--profiler none times any command" in kernel.cli("run", *words[2:]).errors
    assert "after two dashes" in kernel.cli("run").errors
    assert "no such command" in kernel.cli("run", "--", "nonesuch").errors
    assert (
        "--fact: expected NAME=VALUE"
        in kernel.cli("run", "--fact=x", "--profiler=none", *words[2:]).errors
    )


_TWICE: Final = "k is called twice (lines 5, 6"


@pytest.mark.parametrize(
    ("calls", "refusal"),
    [
        ("k()\nk()", f"{_TWICE})"),
        ("def f(): k()\nf()", None),
        ("f = lambda: k()\n", None),
        ("if True:\n    k()", None),
        ("for _ in range(3):\n    k()", "k is called in a loop (line 6)"),
        ("[k() for _ in 'ab']", "k is called in a loop (line 5)"),
        ("def g(): k()\ndef h(): g()\nh()\nh()", "k is called twice (lines 7, 8 through h)"),
        ("def g(): g()\ng()", None),
        ("k(k)", None),
        ("", None),
    ],
)
def test_one_call_is_looked_for_before_anything_runs(
    kernel: Project, calls: str, refusal: str | None
) -> None:
    source = (
        f"from ttl import operation\n@operation(grid=1)\ndef k(*a):\n    print('ran')\n{calls}\n"
    )
    (kernel.path / "kernel.py").write_text(source)
    words = ("run", "--profiler=ttlang", "--ttnn-perf-nonesuch", "--", sys.executable, "kernel.py")
    ran = kernel.cli_process(*words) if refusal is None else kernel.cli(*words)
    assert ran.code == 2
    found = "; a profile holds one call: comment one out, or --name, or --anyway"
    if refusal is None:
        assert "a profile holds" not in ran.errors
    else:
        assert ran.errors.strip() == f"ttnn-perf: kernel.py: {refusal}{found}"
        anyway = kernel.cli_process("run", "--anyway", *words[1:])
        assert "a profile holds" not in anyway.errors


#: Stands in for tt-lang's simulator: an event for each line of the script.
SIMULATOR: Final = """#!/bin/sh
{
  echo '{"tick": 0, "kernel": null, "event": "operation_start", "node": 0}'
  while read line; do echo '{"tick": 1, "kernel": "node0-read", "event": "kernel_start"}'; done < $1
  echo '{"tick": 2, "kernel": null, "event": "operation_end", "node": 0}'
} > $3
"""


def test_a_step_of_a_script_is_tried_and_says_who_approved_it(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project.path / "tt-lang-sim").write_text(SIMULATOR)
    (project.path / "tt-lang-sim").chmod(0o755)
    monkeypatch.setenv("PATH", f"{project.path}:{os.environ['PATH']}")
    kernel = project.path / "kernel.py"
    kernel.write_text(KERNEL)
    for words in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "Start")):
        named = ("-c", "user.name=A", "-c", "user.email=a@example.org")
        assert project.run("git", *named, *words).code == 0
    kernel.write_text(KERNEL.replace("(2, 2)", "(4, 4)").replace("def main", "\ndef main"))
    command = ("--profiler=sim", "--", sys.executable, "kernel.py")
    ran = project.cli_process("try", "-mWider", "--approved-by=Ann", *command)
    # Other counts are no loss: without times, nobody can tell.
    assert ran.code == 7, ran.text + ran.errors
    assert "CANNOT_TELL: Wider\n  no times here: measure on hardware" in ran.text
    assert "approved by Ann" in ran.text
    assert "sim_events" in ran.text
    (step,) = json.loads(project.cli("journal", "--format=json").text)["steps"]
    assert step["approved_by"] == "Ann"
    assert "kernel.py::add" in project.cli_process("ab", "HEAD", *command).text


def test_a_script_says_nothing_of_other_baselines(project: Project) -> None:
    project.write(
        test_model="""
        def test_one(ttnn_perf):
            ttnn_perf.record("reshards", 3, kind="count")
    """
    )
    project.pytest("--ttnn-perf-update=new")
    ran = run(project, "--", "false", profiler="none")
    assert "false::command" in ran.text
    assert "without a test" not in ran.errors + ran.text
