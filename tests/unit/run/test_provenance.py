"""The version of a project that is checked out, without a slow call."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from pytest_ttnn_perf.processes import git as git_files
from pytest_ttnn_perf.run.record import environment_of

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


def test_environment_outside_a_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    git(tmp_path, "init")
    inside = tmp_path / "elsewhere" / "models"
    inside.mkdir(parents=True)
    assert environment_of(inside).dirty is False
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    environment = environment_of(inside)
    assert (environment.commit, environment.dirty) == (None, None)


def test_commit_and_dirtiness_of_a_repository(tmp_path: Path) -> None:
    git(tmp_path, "init")
    assert environment_of(tmp_path).commit is None
    (tmp_path / "model.py").write_text("a = 1\n")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-m", "one")
    clean = environment_of(tmp_path)
    assert clean.commit is not None
    assert len(clean.commit) == 40
    assert clean.dirty is False
    (tmp_path / "untracked.py").write_text("")
    assert environment_of(tmp_path).dirty is False
    (tmp_path / "model.py").write_text("a = 2\n")
    assert environment_of(tmp_path).dirty is True


def test_a_git_that_does_not_answer_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git(tmp_path, "init")
    slow = tmp_path / "git"
    slow.write_text("#!/bin/sh\nsleep 60\n")
    slow.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setattr(git_files, "_STATE_TIMEOUT_S", 0.2)
    assert environment_of(tmp_path).commit is None


def test_without_git_nothing_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    git(tmp_path, "init")
    monkeypatch.setenv("PATH", str(tmp_path / "nowhere"))
    assert environment_of(tmp_path).dirty is None
