"""``ttnn-perf bisect`` where the question is wrong, or a commit cannot be checked out."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf.cli.experiments import split_bad
from pytest_ttnn_perf.core.settings import Settings
from pytest_ttnn_perf.experiments.bisect import state_file
from pytest_ttnn_perf.experiments.rounds import Experiment
from pytest_ttnn_perf.machine.git import Repository
from tests.harness.project import run_command
from tests.harness.versions import Versions

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Versions:
    """A repository with three commits, in which this process stands."""
    versions = Versions(tmp_path)
    for number in range(3):
        versions.model(a={"latency": 10.0})
        versions.write("number.txt", str(number))
        versions.commit(f"Step {number}")
    monkeypatch.chdir(versions.root)
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    return versions


def test_what_is_no_commit_is_refused(inside: Versions) -> None:
    ran = run_command("bisect", "no-such-tag")
    assert (ran.code, ran.text) == (2, "")
    expected = "expected a branch, a tag or a commit"
    assert ran.errors == f"ttnn-perf: 'no-such-tag' is not a commit of {inside.root}: {expected}\n"


@pytest.mark.usefixtures("inside")
def test_a_history_without_commits_is_refused() -> None:
    ran = run_command("bisect", "HEAD")
    wrong = "HEAD and HEAD are the same commit: nothing to look for"
    assert (ran.code, ran.errors) == (2, f"ttnn-perf: {wrong}\n")


def test_good_and_bad_the_wrong_way_round_are_refused(inside: Versions) -> None:
    ran = run_command("bisect", "HEAD", "HEAD~2")
    older, _, newer = inside.git("log", "--reverse", "--format=%h").split()
    common = inside.git("rev-parse", "HEAD~2")[:12]
    wrong = f"{newer} is not an ancestor of {older}: try the commit where they part: {common}"
    assert (ran.code, ran.errors) == (2, f"ttnn-perf: {wrong}\n")


def test_bad_is_the_word_after_good_if_that_is_a_commit(inside: Versions) -> None:
    def split(*words: str) -> tuple[str, list[str]]:
        return split_bad(words, inside.root)

    assert split("HEAD~1", "test_model.py") == ("HEAD~1", ["test_model.py"])
    assert split("HEAD~1", "--", "-k", "a") == ("HEAD~1", ["-k", "a"])
    assert split("test_model.py", "HEAD~1") == ("HEAD", ["test_model.py", "HEAD~1"])
    assert split("-k", "HEAD~1") == ("HEAD", ["-k", "HEAD~1"])
    assert split("no_such_file.py") == ("HEAD", ["no_such_file.py"])
    assert split() == ("HEAD", [])


def test_a_word_that_is_a_commit_and_a_file_is_refused(inside: Versions) -> None:
    inside.git("tag", "src")
    ran = run_command("bisect", "HEAD~2", "src")
    wrong = "src is a commit and a file: write src^0, or ./src"
    assert (ran.code, ran.errors) == (2, f"ttnn-perf: {wrong}\n")


def test_a_bad_commit_that_cannot_be_checked_out_ends_it(inside: Versions) -> None:
    """A filter that fails, as where the server of git-lfs is away."""
    inside.write(".gitattributes", "zz.bin filter=broken\n")
    inside.write("zz.bin", "weights")
    inside.commit("Weights")
    inside.git("config", "filter.broken.smudge", "false")
    inside.git("config", "filter.broken.required", "true")
    ran = run_command("bisect", "HEAD~1")
    assert (ran.code, ran.text) == (3, "")
    assert "cannot be checked out" in ran.errors
    assert inside.left_behind() == []


def test_a_damaged_state_is_refused_with_its_place(inside: Versions) -> None:
    """It is not overwritten: hours may be in it."""
    repository = Repository(inside.root)
    good, bad = (repository.commit(name) for name in ("HEAD~2", "HEAD"))
    settings = Settings(artifacts=inside.root / ".ttnn_perf")
    asked = Experiment(("bisect",), ["-x"], 50, inside.root, settings, lambda *_: None)
    file = state_file(asked, None, good, bad)
    file.parent.mkdir(parents=True)
    file.write_text('{"format": 1, "steps": 3}')
    ran = run_command("bisect", "HEAD~2", "-x")
    assert (ran.code, ran.text) == (3, "")
    assert ran.errors.startswith(f"ttnn-perf: {file}:1: ['steps']: expected a list")
    assert file.read_text() == '{"format": 1, "steps": 3}'
