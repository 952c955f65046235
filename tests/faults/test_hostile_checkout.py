"""A checkout of someone else's: no program that its files name is run, and git still tells."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from textwrap import dedent
from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf.core.baseline import Acceptance
from pytest_ttnn_perf.machine import git as git_module
from pytest_ttnn_perf.machine.git import _ALWAYS, Git, GitError, work_tree
from tests.harness.baselines import Desk, stored, times
from tests.harness.hostile import plant
from tests.harness.repository import Repository
from tests.harness.versions import Versions

if TYPE_CHECKING:
    from pathlib import Path

    from tests.harness.project import Project

A = "test_m.py::test_a"
KEY = "wormhole_b0-n150-1x1"
FILE = f"baselines/{KEY}/test_m.json"
LATER = Acceptance("2026-11-16T10:00:00Z", "aaa1111", "bfp8 weights")
LAST = Acceptance("2026-11-17T10:00:00Z", "bbb2222", "float32 sums")

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")


@pytest.fixture
def marker(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file that a hostile program leaves."""
    return tmp_path_factory.mktemp("marker") / "a-program-was-run"


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """A repository with one accepted baseline."""
    monkeypatch.chdir(tmp_path)
    desk = Desk(tmp_path)
    repository = Repository(desk)
    repository.git("init", "-q", "-b", "main")
    desk.store(A, stored(times(10.0)))
    repository.commit("first")
    return desk


@pytest.mark.parametrize("command", ["status", "log"])
def test_the_arguments_alone_keep_git_out_of_a_bare_repository(
    tmp_path: Path, marker: Path, command: str
) -> None:
    """Should a call of ours ever begin in such a folder after all; without them it is hostile."""
    theirs = tmp_path / "theirs"
    plant(theirs, marker=marker)
    words = ["git", *_ALWAYS, "-C", str(theirs), command]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert not marker.exists()
    assert "cannot use bare repository" in done.stderr
    # Or the tests below tell nothing.
    subprocess.run(["git", command], cwd=theirs, capture_output=True, check=False)
    assert marker.exists()


def test_a_huge_side_of_a_conflict_is_refused(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    repository = Repository(desk)
    repository.git("branch", "other")
    desk.store(A, stored(times(11.0), accepted=LATER))
    repository.commit("ours")
    repository.git("checkout", "-q", "other")
    desk.store(A, stored(times(12.0)))
    repository.commit("theirs")
    repository.git("merge", "-q", "--no-edit", "main", ok=False)
    monkeypatch.setattr(git_module, "LARGEST_TEXT_BYTES", 100)
    ran = desk.run("merge", "--path", FILE, "--take", "ours")
    assert ran.code == 3
    assert f"{FILE}: expected at most 100 bytes on each side of the conflict, found " in ran.errors


def test_a_conflict_beside_it_is_merged_from_the_right_repository(desk: Desk, marker: Path) -> None:
    repository = Repository(desk)
    repository.git("branch", "other")
    desk.store(A, stored(times(11.0), accepted=LATER))
    repository.commit("ours")
    repository.git("checkout", "-q", "other")
    plant(desk.path / "baselines" / KEY, marker=marker)
    desk.store(A, stored(times(12.0)))
    repository.commit("theirs")
    repository.git("checkout", "-q", "main")
    repository.git("merge", "-q", "--no-edit", "other", ok=False)

    ran = desk.run("merge", "--path", FILE, "--take", "ours")

    assert (ran.code, ran.errors) == (0, "")
    assert desk.sessions(A) == [11.0]
    assert not marker.exists()


def test_the_driver_is_installed_in_the_users_repository(desk: Desk, marker: Path) -> None:
    plant(desk.path / "baselines", marker=marker)
    theirs = (desk.path / "baselines" / "config").read_text()

    assert desk.run("install-merge-driver").code == 0

    assert (desk.path / "baselines" / "config").read_text() == theirs
    assert "baseline merge %O %A %B --path %P" in (desk.path / ".git" / "config").read_text()
    assert (desk.path / ".gitattributes").exists()
    assert not marker.exists()


def test_a_run_tells_the_commit_of_the_users_repository(project: Project, marker: Path) -> None:
    """The root of the tests is a folder of the repository, and a repository of its own to git."""
    inner = project.path / "models"
    plant(inner, marker=marker)
    (inner / "pytest.ini").write_text("[pytest]\n")
    (inner / "test_m.py").write_text(
        dedent("""
        def test_a(ttnn_perf):
            ttnn_perf.record("latency", [1.0, 1.0], unit="ms")
        """)
    )
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "one"]):
        who = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
        subprocess.run(["git", *who, *words], cwd=project.path, check=True, capture_output=True)
    head = Git(project.path).run("rev-parse", "HEAD").strip()

    ran = project.pytest("--ttnn-perf", "--ttnn-perf-json=run.json", "-c", "models/pytest.ini")

    environment = json.loads((project.path / "run.json").read_text())["environment"]
    assert (environment["commit"], environment["dirty"]) == (head, False), ran.text
    assert not marker.exists()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("ab", "HEAD"), "1 test compared in 3 rounds"),
        pytest.param(("bisect", "HEAD~1"), ": nothing to look for", marks=pytest.mark.long),
    ],
)
def test_versions_are_compared_without_running_anything(
    tmp_path: Path, marker: Path, words: tuple[str, str], told: str
) -> None:
    versions = Versions(tmp_path)
    versions.model(fast={"latency": 10.0})
    plant(versions.root / "models", marker=marker)
    shutil.move(versions.root / "test_model.py", versions.root / "models" / "test_model.py")
    versions.commit("Start")
    versions.write("notes.txt", "")
    versions.commit("Notes")

    environment = versions.environment(str(versions.root / "src"))
    command = [sys.executable, "-m", "pytest_ttnn_perf.cli.main", *words, "--rounds", "3"]
    done = subprocess.run(
        [*command, "--same", "../src"], cwd=versions.root / "models", env=environment, text=True,
        capture_output=True, timeout=300, check=False,
    )  # fmt: skip

    assert told in done.stdout, done.stdout + done.stderr
    assert not marker.exists()


def test_git_is_asked_nothing_where_no_working_tree_begins(tmp_path: Path, marker: Path) -> None:
    """Also of a git too old to know that a bare repository must be named to be used."""
    plant(tmp_path / "theirs", marker=marker)
    assert work_tree(tmp_path / "theirs") is None
    with pytest.raises(GitError, match="it is not the top of a working tree"):
        Git(tmp_path / "theirs").run("status")
    assert not marker.exists()


def test_settings_of_the_user_hold_and_those_that_would_start_programs_do_not(
    desk: Desk, marker: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = desk.path / "gitconfig"
    settings.write_text(
        f"[log]\nshowSignature = true\n[core]\nfsmonitor = touch {marker}\n[core]\n"
        f"pager = touch {marker}\n[user]\nname = Grace\n"
    )
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(settings))
    git = Git(desk.path)
    assert git.run("config", "user.name") == "Grace\n"
    git.run("status")
    git.run("log")
    assert not marker.exists()
