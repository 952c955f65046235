"""``ttnn-perf bisect``: a commit is found, in real processes, whatever happens on the way."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.faults.refusals import assert_no_traceback
from tests.faults.workers import assert_gone
from tests.harness.golden import assert_golden
from tests.harness.versions import Versions

if TYPE_CHECKING:
    from pathlib import Path

    from tests.harness.project import Ran

#: A test that interrupts the command in its seventh process: after the good and the bad commit.
INTERRUPTS = """
ttnn_perf.record('latency', {ms}, unit='ms')
if number == 6:
    os.kill(os.getppid(), signal.SIGINT)
    time.sleep(60)
"""
NAMED = "test_model.py::test_model[a]"


def cleaned(ran: Ran, versions: Versions) -> str:
    """Return all that was said, without what differs from run to run."""
    text = f"{ran.errors}\n\n{ran.text}"
    ids = versions.git("log", "--reverse", "--format=%h").split()
    for number, short in enumerate(ids):
        text = text.replace(short, f"C{number:0{len(short) - 1}}")
    return text


def assert_nothing_left(versions: Versions, ran: Ran, state: tuple[str, ...]) -> None:
    assert versions.state() == state, "what is the user's is as it was"
    assert versions.left_behind() == []
    assert_gone([pid for pid, _ in versions.processes()])
    assert_no_traceback(ran)


@pytest.mark.long
def test_the_commit_is_found_after_ctrl_c_beside_one_that_is_broken(tmp_path: Path) -> None:
    versions = Versions(tmp_path, drift=0.002)
    for number, (a_ms, b_ms) in enumerate(((10.0, 10.0), (None, 10.0), (10.0, 20.0), (12.0, 20.0))):
        versions.model(a=INTERRUPTS.format(ms=a_ms), b={"latency": b_ms})
        if a_ms is None:
            versions.write("src/model.py", "import nowhere\n")
        versions.write("number.txt", str(number))
        versions.commit(f"Step {number}")
    versions.write("src/model.py", "TESTS = 'not committed'\n")
    state = versions.state()

    ran = versions.command("bisect", "HEAD~3", "HEAD", NAMED, "--rounds=3", "--order-seed=1")

    *_, why, command = ran.text.splitlines()
    assert (ran.code, why) == (7, "interrupted: 3 commits left")
    assert_nothing_left(versions, ran, state)

    good, *_, bad = versions.git("log", "--reverse", "--format=%h").split()
    again = f"ttnn-perf bisect {good} {bad} --rounds 3 --order-seed 1 '{NAMED}'"
    assert command == f"  go on with: {again}"
    ran = versions.command("bisect", good, bad, "--rounds=3", "--order-seed=1", NAMED)

    assert_golden("bisect_table", cleaned(ran, versions))
    assert ran.code == 0
    assert_nothing_left(versions, ran, state)
