"""``ttnn-perf bisect``: a commit is found, in real processes, whatever happens on the way."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from tests.faults.refusals import assert_no_traceback
from tests.faults.workers import assert_gone
from tests.harness.golden import assert_golden
from tests.harness.versions import Versions

if TYPE_CHECKING:
    from pathlib import Path

    from tests.harness.project import Ran

#: A test that interrupts the command in its ninth process: after the good and the bad commit.
INTERRUPTS = """
ttnn_perf.record('latency', {ms}, unit='ms')
if number == 8:
    os.kill(os.getppid(), signal.SIGINT)
    time.sleep(60)
"""


@pytest.fixture
def versions(tmp_path: Path) -> Versions:
    return Versions(tmp_path, drift=0.002)


def history(versions: Versions, *slower: bool | None, test: str | None = None) -> None:
    """Commit versions that are slower or not; None for one that cannot be collected."""
    for number, is_slower in enumerate(slower):
        ms = 12.0 if is_slower else 10.0
        recorded = {"latency": ms} if test is None else test.format(ms=ms)
        if is_slower is None:
            versions.write("src/model.py", "import nowhere\n")
        else:
            versions.model(a=recorded)
        versions.write("number.txt", str(number))
        versions.commit(f"Step {number}")


def cleaned(ran: Ran, versions: Versions) -> str:
    """Return all that was said, without what differs from run to run."""
    text = f"{ran.errors}\n\n{ran.text}"
    ids = versions.git("log", "--reverse", "--format=%h").split()
    for number, short in enumerate(ids):
        text = text.replace(short, f"C{number:0{len(short) - 1}}")
    return re.sub(r", (to compare.*|about \d+ to measure), \d.*$", r", \1, TIME", text, flags=re.M)


def assert_nothing_left(versions: Versions, ran: Ran, state: tuple[str, ...]) -> None:
    assert versions.state() == state, "what is the user's is as it was"
    assert versions.left_behind() == []
    assert_gone([pid for pid, _ in versions.processes()])
    assert_no_traceback(ran)


def test_the_commit_is_found_beside_one_that_is_broken(versions: Versions) -> None:
    """While the working tree has something else altogether."""
    history(versions, False, None, False, True)
    versions.write("src/model.py", "TESTS = 'not committed'\n")
    state = versions.state()

    ran = versions.command("bisect", "HEAD~3", "-k", "a")

    assert_golden("bisect_table", cleaned(ran, versions))
    assert ran.code == 0
    assert_nothing_left(versions, ran, state)
    assert not list((versions.root / ".ttnn_perf").glob("bisect/*")), "it is answered"


def test_only_the_test_that_is_named_is_followed(versions: Versions) -> None:
    """The other one of its file got slower as well, by more, and in another commit."""
    for a_ms, b_ms in ((10.0, 10.0), (10.0, 20.0), (12.0, 20.0)):
        versions.model(a={"latency": a_ms}, b={"latency": b_ms})
        versions.commit(f"a {a_ms}, b {b_ms}")
    named = "test_model.py::test_model[a]"

    ran = versions.command("bisect", "HEAD~2", named, "--format", "json")

    told = json.loads(ran.text)
    assert (ran.code, told["commit"]["subject"]) == (0, "a 12.0, b 20.0")
    assert {effect["test"] for effect in told["effects"]} == {named}
    assert "[b]" not in ran.errors + ran.text


def test_the_same_command_goes_on_after_ctrl_c(versions: Versions) -> None:
    history(versions, False, False, True, test=INTERRUPTS)
    state = versions.state()

    ran = versions.command("bisect", "HEAD~2", "HEAD", "test_model.py")

    *_, why, command, where = ran.text.splitlines()
    assert (ran.code, why) == (7, "interrupted: 2 commits left")
    good, _, bad = versions.git("log", "--reverse", "--format=%h").split()
    assert command == f"  go on with: ttnn-perf bisect {good} {bad} test_model.py"
    (file,) = (versions.root / ".ttnn_perf" / "bisect").iterdir()
    assert where == (
        f"  what is known is in .ttnn_perf/bisect/{file.name}; remove it to start again"
    )
    assert json.loads(file.read_text())["followed"]["metric"] == "latency"
    assert_nothing_left(versions, ran, state)

    words = command.removeprefix("  go on with: ttnn-perf ").split()
    ran = versions.command(*words, "--format", "json")

    told = json.loads(ran.text)
    found = (told["outcome"], told["commit"]["subject"], told["commit"]["merge"])
    assert found == ("found", "Step 2", False)
    assert (told["before"]["subject"], told["resume"]) == ("Step 1", None)
    (effect,) = told["effects"]
    assert (effect["outcome"], effect["rounds"]) == ("REGRESSED", 4)
    assert effect["low"] < 0.2 < effect["high"]
    assert ran.code == 0
    assert not file.exists()
    assert_nothing_left(versions, ran, state)


def test_code_that_is_installed_from_the_working_tree_is_refused(versions: Versions) -> None:
    """An editable install: all commits would run the same."""
    history(versions, False, True)
    path = (versions.installed_editable(),)
    ran = versions.command("bisect", "HEAD~1", "-k", "a", python_path=path)
    assert (ran.code, ran.text) == (2, "")
    assert ran.errors.splitlines()[-2:] == [
        "  let each side find its own first: PYTHONPATH=src ttnn-perf bisect 'HEAD~1' HEAD -k a",
        "  or, if both are to use the same: ttnn-perf bisect 'HEAD~1' HEAD -k a --same src",
    ]
    assert versions.left_behind() == []
