"""``ttnn-perf bisect`` where the question is wrong, or a commit cannot be checked out."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf.cli.experiments import split_bad
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


def test_a_history_without_commits_is_refused(inside: Versions) -> None:
    ran = run_command("bisect", "HEAD")
    head = inside.git("rev-parse", "--short", "HEAD").strip()
    wrong = f"{head} and {head} are the same commit: nothing to look for"
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
