"""Names that others chose are only read: no terminal, CI system or spreadsheet obeys them."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_ttnn_perf.core.baseline import Acceptance
from tests.harness.baselines import Desk, stored, times
from tests.harness.captures import capture, op
from tests.harness.project import Ran, run_command
from tests.harness.terminal import Terminal

if TYPE_CHECKING:
    from tests.harness.project import Project

RED, BREAK, ORDER, GROUP = "\x1b[31m", "a\n::error::x\rb", "::error::y", "##[error]z ##vso[task]"
FORMULA = "=HYPERLINK(1)"
EVIL = f"{RED}{BREAK}{GROUP}"
TESTS = [f"{EVIL}::t", ORDER, f"  {ORDER}", "\u2028::error::w", FORMULA, "+1", "-1+1", "@SUM(1)",
         "\t=1", "\r=1", "plain.py::test_a"]  # fmt: skip


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """A folder with baselines, records and captures in which every name is hostile."""
    folder = tmp_path / "desk"
    folder.mkdir()
    monkeypatch.chdir(folder)
    desk = Desk(folder)
    theirs = Acceptance("2026-11-15T10:00:00Z", f"=1{EVIL}", f"-{EVIL}", EVIL)
    for test in TESTS:
        desk.store(test, stored(times(10.0, 10.1), times(1.0, name=EVIL), accepted=theirs))
    # A third of the tests move, so that no machine shifts.
    metrics: dict[str, Any] = {
        test: {
            "metrics": {
                "latency": {"unit": "ms", "samples": [20.0 if index % 3 == 0 else 10.0] * 3},
                EVIL: {"unit": "ms", "samples": [1.0]},
            }
        }
        for index, test in enumerate(TESTS)
    }
    desk.record(tests={**metrics, FORMULA: [20.0, 20.0], f"new{EVIL}": [1.0, 1.0]}, label=EVIL)
    desk.record("after.json", tests={test: [11.0, 11.0] for test in TESTS}, label=EVIL)
    rows = [op(f"{name}Matmul", 5000 * n) for n, name in enumerate(TESTS, start=1)]
    evil = {"ATTRIBUTES": f"{{'x': '{EVIL}'}}", "INPUT_0_MEMORY": EVIL, "MATH FIDELITY": EVIL}
    (folder / "ops.csv").write_text(capture(*rows, op("=Conv", 100, evil)))
    (folder / "later.csv").write_text(capture(*rows[1:], op(EVIL, 10**6)))
    return desk


COMMANDS = [
    ("gate", "run.json"),
    ("merge", "run.json"),
    ("show", "run.json"),
    ("compare", "run.json", "after.json"),
    ("baseline", "list"),
    ("baseline", "accept", "run.json", "--dry-run"),
    ("baseline", "accept", "run.json", "--update", "all", "--reason", EVIL),
    ("baseline", "prune", "after.json", "--full"),
    ("baseline", "rename", "plain.py::test_a", f"plain.py::{EVIL}"),
    ("show", "ops.csv"),
    ("show", "--ops", "ops.csv"),
    ("compare", "ops.csv", "later.csv"),
    ("check", "--csv", "ops.csv", "--all"),
    ("analyze", "cores", "--csv", "ops.csv"),
]  # fmt: skip


def assert_inert(text: str) -> None:
    """Check that nothing in a text is more than text."""
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202e]", text)
    for line in text.splitlines():
        assert not line.lstrip().startswith("::"), line
        assert not re.search(r"##[a-z]*\[", line), line


@pytest.mark.usefixtures("desk")
@pytest.mark.parametrize("shape", ["table", "csv", "json"])
def test_what_commands_print(shape: str) -> None:
    for command in COMMANDS:
        ran = run_command(*command, "--format", shape)
        assert ran.text, ran.errors
        assert_inert(ran.text)
        assert_inert(ran.errors)
        if shape == "json":
            json.loads(ran.text)
        if shape == "csv":
            heading, *rows = csv.reader(io.StringIO(ran.text))
            assert len(ran.text.splitlines()) == 1 + len(rows)
            for row in rows:
                assert len(row) == len(heading)
                for cell in row:
                    assert cell[:1] not in {"=", "@", "\t", "\r"}
                    assert cell[:1] not in {"+", "-"} or float(cell) is not None
    for report in ("markdown", "gitlab"):
        for name in ("gate", "merge"):
            ran = run_command(name, "run.json", "--format", report)
            assert ran.text
            assert_inert(ran.text)


def test_what_a_narrow_terminal_shows(
    project: Project, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names that are wrapped, cut or put in a line of their own."""
    terminal = Terminal(project, monkeypatch, width=60)
    monkeypatch.chdir(desk.path)
    for command in COMMANDS:
        assert_inert(terminal.cli(*command))


def test_json_and_numbers_stay_what_they_are(desk: Desk) -> None:
    """What programs read is the name itself; in a CSV, what is no number is marked as text."""
    listed = json.loads(desk.run("list", "--format", "json").text)["baselines"]
    assert {row["test"] for row in listed} >= set(TESTS) - {ORDER}
    text = desk.run("list", "--format", "csv").text
    rows = {row["test"]: row for row in csv.DictReader(io.StringIO(text))}
    assert {"'=HYPERLINK(1)", "'+1", "'-1+1", "'@SUM(1)", "\\t=1", "\\r=1"} <= set(rows)
    assert float(rows["'=HYPERLINK(1)"]["centre"]) > 0
    # A change for the better is a negative number, and stays one.
    desk.record("faster.json", tests={"plain.py::test_a": [5.0, 5.0]})
    ran = run_command("gate", "faster.json", "--format", "csv")
    (row,) = [r for r in csv.DictReader(io.StringIO(ran.text)) if r["metric"] == "latency"]
    assert float(row["change"]) < 0


def errors_of(desk: Desk) -> list[Ran]:
    """Return commands that name what they do not find, or cannot read."""
    name = f"{EVIL}.json".replace("/", "")
    (desk.path / name).write_text("{")
    (desk.path / "bad.json").write_text(json.dumps({"format": 1, EVIL: 1, "tests": {EVIL: 3}}))
    file = desk.path / "baselines" / "wormhole_b0-n150-1x1" / "bad.json"
    return [
        run_command("show", name),
        run_command("gate", "bad.json"),
        run_command("baseline", "accept", "run.json", f"{EVIL}nothing"),
        run_command("baseline", "rename", EVIL, "b"),
        run_command("compare", "run.json", f"{BREAK}.json"),
        run_command("rules", EVIL),
        run_command("check", "--csv", "ops.csv", "--select", EVIL),
        run_command("show", "ops.csv", "--region", EVIL),
        *([run_command("baseline", "list")] if file.write_text(f'{{"{GROUP}": 1}}') else []),
    ]


def test_what_errors_say(desk: Desk) -> None:
    for ran in errors_of(desk):
        assert ran.code in {2, 3}
        assert ran.errors.startswith("ttnn-perf: ")
        assert_inert(ran.errors)


def test_what_a_run_says_of_paths(project: Project) -> None:
    """The summary of a run, and what could not be written."""
    project.write(
        test_m="def test_a(ttnn_perf):\n    ttnn_perf.record('latency', [1.0, 1.0], unit='ms')\n"
    )
    folder = Path(f"{RED}x\n::error::y")
    ran = project.pytest(
        "--ttnn-perf-update=new", "--ttnn-perf-baselines", str(folder), "-p", "no:cacheprovider"
    )
    ours = ran.text[ran.text.index("=== ttnn-perf ===") :]
    assert "commit \\x1b[31mx\\n::error::y/" in ours
    assert_inert(ours)
