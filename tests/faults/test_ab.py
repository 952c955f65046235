"""``ttnn-perf ab`` when something goes wrong: what there is is judged, and nothing stays behind."""

from __future__ import annotations

import os
import re
import signal
from typing import TYPE_CHECKING

import pytest

from tests.faults.refusals import assert_no_traceback
from tests.faults.workers import assert_gone
from tests.harness.project import run_command
from tests.harness.versions import Versions

if TYPE_CHECKING:
    from pathlib import Path

    from tests.harness.project import Ran

#: A test that sends a signal to the command in one of its processes, and waits for what comes.
SIGNAL = """
ttnn_perf.record('latency', 10.0, unit='ms')
if number == {number}:
    os.kill(os.getppid(), signal.{name})
    time.sleep(60)
"""

#: A test that leaves a trace.
RUN = """
with (MACHINE / "ran").open("a") as file: file.write("x")
ttnn_perf.record('latency', 10.0, unit='ms')
"""


@pytest.fixture
def versions(tmp_path: Path) -> Versions:
    return Versions(tmp_path)


def assert_nothing_left(versions: Versions, ran: Ran) -> None:
    """Check that neither a worktree nor a process is left, nor a traceback shown."""
    assert versions.left_behind() == []
    assert_gone([pid for pid, _ in versions.processes()])
    assert_no_traceback(ran)


@pytest.mark.long
def test_ctrl_c_judges_the_rounds_that_are_whole(versions: Versions) -> None:
    """In the fourth: three are the fewest that say anything, and the exit code is theirs."""
    versions.model(slower={"latency": 10.0}, ends=SIGNAL.format(number=6, name="SIGINT"))
    versions.commit("Start")
    versions.model(slower={"latency": 15.0}, ends=SIGNAL.format(number=6, name="SIGINT"))

    ran = versions.command("ab", "HEAD", "--rounds=9", "--order-seed=1")

    lines = ran.text.splitlines()
    assert "interrupted: 3 rounds of at most 9 are complete, and were judged" in lines
    assert lines[-1] == "2 tests compared in 3 rounds; metrics: 1 WITHIN, 1 REGRESSED"
    assert ran.code == 1
    assert_nothing_left(versions, ran)


def test_sigterm_before_enough_rounds_judges_nothing(versions: Versions) -> None:
    """On the side of the commit: it is the worktree's own worker that is running.

    It runs code of the working tree, which it was told to share.
    """
    versions.model()
    versions.commit("Start")
    versions.model(ends=SIGNAL.format(number=1, name="SIGTERM"))

    shared = ("--order-seed=1", "--same", "src/model.py", "--same", "test_model.py")
    ran = versions.command("ab", "HEAD", *shared, python_path=(versions.installed_editable(),))

    lines = ran.text.splitlines()
    assert lines[3:] == [
        "src/model.py was that of the working tree on both sides",
        "test_model.py was that of the working tree on both sides",
        "order of rounds: --order-seed 1",
        "interrupted: 0 rounds of at most 20 are complete, too few to judge: it takes 3",
        "0 tests compared in 0 rounds; nothing was judged",
    ]
    assert ran.code == 1
    assert [ours for _, ours in versions.processes()] == [True, False]
    assert_nothing_left(versions, ran)


@pytest.mark.parametrize("late", [False, pytest.param(True, marks=pytest.mark.long)])
def test_code_that_is_installed_from_the_working_tree_is_not_compared_with_itself(
    versions: Versions, late: bool
) -> None:
    """An editable install: both versions would run the same module, and look alike."""
    if late:
        source = (versions.root / "test_model.py").read_text()
        late_import = f"TESTS = {{'a': {RUN!r} + 'import model'}}"
        versions.write("test_model.py", source.replace("from model import TESTS", late_import))
    versions.model(a=RUN)
    versions.commit("Start")
    versions.model(a=RUN + "pass")

    words = ("ab", "HEAD", "-k", "a", "--order-seed=1")
    ran = versions.command(*words, python_path=(versions.installed_editable(),))

    assert (ran.code, ran.text) == (2, "")
    assert ran.errors.splitlines()[-4:] == [
        "ttnn-perf: tests of HEAD ran code of the working tree: model from src/model.py",
        "  so it would be compared with itself: an editable install, or a path, points there",
        "  let each side find its own first: PYTHONPATH=src ttnn-perf ab HEAD -k a",
        "  or, if both are to use the same: ttnn-perf ab HEAD -k a --same src",
    ]
    tests_run = (versions.path / "machine" / "ran").read_text()
    assert tests_run == ("xx" if late else "x"), "none of the other side, if that can be known"
    assert_nothing_left(versions, ran)


def test_project_without_a_measured_test_is_refused(versions: Versions) -> None:
    versions.write("test_model.py", "def test_plain(): pass\n")
    versions.commit("Start")
    ran = versions.command("ab", "HEAD")
    assert (ran.code, ran.text) == (2, "")
    wrong = (
        "no test was measured: test_model.py::test_plain measures nothing: mark tests with "
        "@pytest.mark.ttnn_perf, or name others"
    )
    assert ran.errors.splitlines()[-1] == f"ttnn-perf: {wrong}"


@pytest.fixture
def inside(versions: Versions, monkeypatch: pytest.MonkeyPatch) -> Versions:
    """A repository with one commit, in which this process stands."""
    versions.model(a={"latency": 10.0})
    versions.commit("Start")
    monkeypatch.chdir(versions.root)
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setattr("tempfile.tempdir", str(versions.path / "tmp"))
    return versions


@pytest.mark.parametrize("ref", ["no-such-branch", "HEAD:src"])
def test_what_is_no_commit_is_refused(inside: Versions, ref: str) -> None:
    ran = run_command("ab", ref)
    assert (ran.code, ran.text) == (2, "")
    expected = "expected a branch, a tag or a commit"
    assert ran.errors == f"ttnn-perf: {ref!r} is not a commit of {inside.root}: {expected}\n"


def test_folder_in_no_repository_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    monkeypatch.chdir(tmp_path)
    ran = run_command("ab", "HEAD")
    assert (ran.code, ran.text) == (2, "")
    assert ran.errors == (
        f"ttnn-perf: {tmp_path} is in no git repository with a working tree: "
        "neither it nor a folder above it has a .git\n"
    )


def test_what_is_to_be_shared_must_be_there(inside: Versions) -> None:
    for wrong in ("no-such-folder", "/usr"):
        ran = run_command("ab", "HEAD", "--same", wrong)
        assert ran.code == 2
        assert ran.errors == (
            f"ttnn-perf: --same {wrong}: expected a file or folder of {inside.root}\n"
        )


def test_temporary_folder_in_the_repository_is_refused(
    inside: Versions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(inside.root / "src"))
    ran = run_command("ab", "HEAD")
    assert ran.code == 2
    found = f"ttnn-perf: the temporary folder {inside.root}/src lies in the repository"
    assert ran.errors == f"{found}: set TMPDIR to another\n"


def test_checkout_that_fails_half_way_leaves_nothing(inside: Versions) -> None:
    """A filter that fails, as where the server of git-lfs is away: files were written already.

    Nor does a run before it, which was killed.
    """
    inside.write(".gitattributes", "zz.bin filter=broken\n")
    inside.write("zz.bin", "weights")
    inside.commit("Weights")
    inside.git("config", "filter.broken.smudge", "false")
    left = inside.killed()
    inside.git("config", "filter.broken.required", "true")

    ran = run_command("ab", "HEAD")

    assert (ran.code, ran.text) == (3, "")
    removed, refused = ran.errors.splitlines()
    assert removed == "removed what 1 earlier run left behind"
    assert not left.exists()
    assert re.match(
        rf"ttnn-perf: {inside.root}: commit [0-9a-f]{{12}} cannot be checked out: \S", refused
    )
    assert inside.left_behind() == []


def test_folder_and_tests_that_the_commit_does_not_have_are_refused(
    inside: Versions, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside.write("new/test_new.py", "")
    ran = run_command("ab", "HEAD", "new/test_new.py::test_a")
    assert ran.code == 2
    wrong = "ttnn-perf: nothing to compare: the commit does not have new/test_new.py::test_a\n"
    assert ran.errors == wrong
    monkeypatch.chdir(inside.root / "new")
    ran = run_command("ab", "HEAD")
    assert (ran.code, ran.errors) == (
        2,
        "ttnn-perf: HEAD has no folder new: nothing to compare\n",
    )
    assert inside.left_behind() == []


def test_ctrl_c_while_it_is_checked_out_leaves_nothing(inside: Versions) -> None:
    """git has started a filter of its own by then, which ends with it."""
    pid = inside.path / "pid"
    survived = inside.path / "survived"
    interrupt = f"echo $$ > {pid}; kill -INT {os.getpid()}; sleep 3; touch {survived}"
    inside.write(".gitattributes", "zz.bin filter=slow\n")
    inside.write("zz.bin", "weights")
    inside.commit("Weights")
    inside.git("config", "filter.slow.smudge", f"sh -c '{interrupt}'")
    usual = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        ran = run_command("ab", "HEAD")
    finally:
        signal.signal(signal.SIGINT, usual)
    assert ran.code == 1
    assert "interrupted: 0 rounds of at most 20 are complete" in ran.text
    assert_gone([int(pid.read_text())])
    assert not survived.exists()
    assert inside.left_behind() == []
