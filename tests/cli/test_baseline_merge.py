"""``ttnn-perf baseline merge``, by hand and as git's merge driver in a real repository."""

from __future__ import annotations

import shlex
import shutil
import sys
from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf.core.baseline import Acceptance
from tests.harness.baselines import ops, stored, times
from tests.harness.repository import Repository

if TYPE_CHECKING:
    from pathlib import Path

    from tests.harness.baselines import Desk

A, B = "test_m.py::test_a", "test_m.py::test_b"
FILE = "baselines/wormhole_b0-n150-1x1/test_m.json"
TABLE = "baselines/wormhole_b0-n150-1x1/test_m.ops/test_a.csv"
OURS = Acceptance("2026-11-16T10:00:00Z", "aaa1111", "bfp8 weights")
THEIRS = Acceptance("2026-11-17T10:00:00Z", "bbb2222", "float32 sums")

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")


@pytest.fixture
def repository(desk: Desk) -> Repository:
    """A repository with one baseline of A, and the driver installed.

    Nothing of our environment is on the PATH, and the project has modules named as others are.
    """
    found = Repository(desk)
    (desk.path / "argparse.py").write_text("raise SystemExit('not this one')\n")
    found.git("init", "-q", "-b", "main")
    desk.store(A, stored(times(10.0, 10.1), table=ops("Matmul")))
    assert desk.run("install-merge-driver").code == 0
    found.commit("first")
    found.git("branch", "other")
    return found


def test_sessions_of_two_branches_are_joined(repository: Repository) -> None:
    desk = repository.desk
    desk.store(A, stored(times(10.0, 10.1, 10.3)))
    repository.commit("ours")
    repository.git("checkout", "-q", "other")
    desk.store(A, stored(times(10.0, 10.1, 10.2)))
    repository.commit("theirs")
    repository.git("merge", "--no-edit", "main")
    assert desk.sessions(A) == [10.0, 10.1, 10.2, 10.3]


@pytest.fixture
def conflict(repository: Repository) -> Repository:
    """A repository in which a merge has stopped: A was accepted on both sides."""
    desk = repository.desk
    desk.store(A, stored(times(10.0, 10.1, 12.0, since=2), accepted=OURS, table=ops("Conv2d")))
    repository.commit("ours")
    repository.git("checkout", "-q", "other")
    desk.store(A, stored(times(10.0, 10.1, 11.0, since=2), accepted=THEIRS, table=ops("Softmax")))
    desk.store(B, stored(times(5.0)))
    repository.commit("theirs")
    repository.git("checkout", "-q", "main")
    said = repository.git("merge", "--no-edit", "other", ok=False)
    assert f"conflict in {FILE}: test_a was accepted on both sides; ours is in it" in said
    assert "latency: ours 12.00 ms (1 session), theirs 11.00 ms (1 session)" in said
    assert "ours: accepted 2026-11-16T10:00:00Z at aaa1111, bfp8 weights" in said
    assert "theirs: accepted 2026-11-17T10:00:00Z at bbb2222, float32 sums" in said
    assert f"ttnn-perf baseline merge --path {FILE} --take theirs && git add {FILE}" in said
    return repository


def test_a_side_is_taken(conflict: Repository) -> None:
    desk = conflict.desk
    assert (desk.sessions(A), desk.sessions(B)) == ([10.0, 10.1, 12.0], [5.0])
    assert conflict.git("diff", "--name-only", "--diff-filter=U").split() == [FILE, TABLE]
    for take, median in (("theirs", 11.0), ("ours", 12.0)):
        ran = desk.run("merge", "--path", FILE, "--take", take)
        assert ran.code == 0
        assert ran.text.startswith(f"resolved in {FILE}: test_a was accepted on both sides")
        assert (desk.sessions(A)[-1], desk.sessions(B)) == (median, [5.0])
    # Git mixes no op tables: they belong to one run.
    assert (desk.path / TABLE).read_text().splitlines()[1].startswith("Conv2d")


def test_installing_twice_changes_nothing(repository: Repository) -> None:
    desk = repository.desk
    attributes = desk.path / ".gitattributes"
    assert attributes.read_text().splitlines() == [
        "baselines/**/*.json merge=ttnn-perf",
        "baselines/**/*.ops/*.csv -merge",
    ]
    config = (desk.path / ".git" / "config").read_text()
    driver = Repository(desk).git("config", "merge.ttnn-perf.driver")
    assert shlex.split(driver)[0] == sys.executable
    assert driver.strip().endswith(" baseline merge %O %A %B --path %P")
    ran = desk.run("install-merge-driver")
    assert ran.code == 0
    assert (desk.path / ".git" / "config").read_text() == config
    assert len(attributes.read_text().splitlines()) == 2


@pytest.fixture
def versions(desk: Desk) -> tuple[Path, Path, Path]:
    """Three versions of a file: theirs has a session more."""
    for name, medians in (("base", (10.0,)), ("ours", (10.0,)), ("theirs", (10.0, 10.1))):
        desk.store(A, stored(times(*medians)))
        shutil.copy(desk.path / FILE, desk.path / f"{name}.json")
    return desk.path / "base.json", desk.path / "ours.json", desk.path / "theirs.json"


def test_by_hand_the_result_is_in_ours(desk: Desk, versions: tuple[Path, Path, Path]) -> None:
    base, ours, theirs = versions
    before = base.read_text(), theirs.read_text()
    ran = desk.run("merge", *versions)
    assert (ran.code, ran.text, ran.errors) == (0, "", "")
    assert ours.read_text() == theirs.read_text()
    assert (base.read_text(), theirs.read_text()) == before


def test_a_version_that_cannot_be_read_leaves_ours_alone(
    desk: Desk, versions: tuple[Path, Path, Path]
) -> None:
    _, ours, theirs = versions
    before = ours.read_text()
    theirs.write_text("<<<<<<< ours\n")
    ran = desk.run("merge", *versions)
    assert (ran.code, ran.text) == (3, "")
    assert "theirs.json:1: a merge conflict is not resolved here" in ran.errors
    theirs.write_text(before.replace("n150", "n300"))
    ran = desk.run("merge", *versions)
    assert ran.code == 3
    assert "of different hardware: wormhole_b0-n150-1x1 and wormhole_b0-n300-1x1" in ran.errors
    assert ours.read_text() == before
