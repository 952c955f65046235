"""The version of a project that is checked out, without a slow call."""

from __future__ import annotations

import subprocess
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from pytest_ttnn_perf.core.hardware import Environment
from pytest_ttnn_perf.gate.record import ci_job, environment_of, of_split
from pytest_ttnn_perf.machine import git as git_files

if TYPE_CHECKING:
    from pathlib import Path


def git(folder: Path, *arguments: str) -> str:
    words = ["git", "-c", "user.name=a", "-c", "user.email=a@b.c", *arguments]
    done = subprocess.run(words, cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


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


COMMIT = "3" * 40


def repository(folder: Path, commits: int = 2) -> None:
    git(folder, "init", "-b", "main")
    for number in range(commits):
        git(folder, "commit", "--allow-empty", "-m", f"change {number}")


def told(folder: Path, **variables: str) -> tuple[str | None, str | None]:
    environment = environment_of(folder, ci_job(variables, folder))
    return environment.branch, environment.pull_request


def test_branch_parents_and_time_of_the_commit(tmp_path: Path) -> None:
    repository(tmp_path)
    before = git(tmp_path, "rev-parse", "HEAD~")
    found = environment_of(tmp_path)
    assert (found.branch, found.parents) == ("main", (before,))
    made = int(git(tmp_path, "show", "--no-patch", "--format=%ct"))
    assert found.committed_at == f"{datetime.fromtimestamp(made, timezone.utc):%FT%TZ}"
    git(tmp_path, "checkout", "--detach")
    assert environment_of(tmp_path).branch is None


def test_a_shallow_clone_knows_the_parents_that_it_does_not_have(tmp_path: Path) -> None:
    (tmp_path / "whole").mkdir()
    repository(tmp_path / "whole")
    git(tmp_path, "clone", "--depth=1", f"file://{tmp_path}/whole", "shallow")
    found = environment_of(tmp_path / "shallow")
    assert found.parents == (git(tmp_path / "whole", "rev-parse", "HEAD~"),)


def test_objects_that_stand_in_for_others_are_not_believed(tmp_path: Path) -> None:
    repository(tmp_path, 3)
    before = git(tmp_path, "rev-parse", "HEAD~")
    git(tmp_path, "replace", "--graft", "HEAD", "HEAD~2")
    assert environment_of(tmp_path).parents == (before,)


def test_only_one_call_of_git_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repository(tmp_path)
    calls: list[tuple[str, ...]] = []
    run = git_files.Git.run

    def counted(self: git_files.Git, *words: str, **more: Any) -> str:
        calls.append(words)
        return run(self, *words, **more)

    monkeypatch.setattr(git_files.Git, "run", counted)
    environment_of(tmp_path)
    assert [call[0] for call in calls] == ["status", "--no-replace-objects"]


#: What a job's variables tell of its branch and its pull request.
JOBS: list[tuple[dict[str, str], tuple[str | None, str | None]]] = [
    ({"GITHUB_REF": "refs/heads/release/1"}, ("release/1", None)),
    ({"GITHUB_REF": "refs/heads/x", "GITHUB_SHA": COMMIT}, (None, None)),
    ({"GITHUB_REF_TYPE": "branch", "GITHUB_REF_NAME": "x"}, ("x", None)),
    ({"GITHUB_REF": "refs/tags/v1", "GITHUB_REF_NAME": "v1"}, (None, None)),
    ({"GITHUB_REF": "refs/pull/17/merge", "GITHUB_HEAD_REF": "topic", "GITHUB_SHA": COMMIT,
      "GITHUB_EVENT_NAME": "pull_request"}, ("topic", "17")),
    ({"GITHUB_REF": "refs/heads/main", "GITHUB_HEAD_REF": "topic",
      "GITHUB_EVENT_NAME": "pull_request_target"}, ("topic", "topic")),
    ({"GITHUB_REF": "refs/heads/main", "GITHUB_EVENT_NAME": "pull_request_target"},
     ("main", "pull_request_target")),
    ({"CI_COMMIT_BRANCH": "main"}, ("main", None)),
    ({"CI_COMMIT_BRANCH": "main", "CI_COMMIT_SHA": COMMIT}, (None, None)),
    ({"CI_MERGE_REQUEST_IID": "5", "CI_MERGE_REQUEST_SOURCE_BRANCH_NAME": "topic"},
     ("topic", "5")),
    ({}, (None, None)),
]  # fmt: skip


def test_where_no_branch_is_checked_out_the_job_tells(tmp_path: Path) -> None:
    repository(tmp_path, 1)
    git(tmp_path, "checkout", "--detach")
    for variables, expected in JOBS:
        assert told(tmp_path, **variables) == expected


def test_the_branch_that_is_checked_out_is_believed_before_the_job(tmp_path: Path) -> None:
    repository(tmp_path, 1)
    assert told(tmp_path, GITHUB_REF="refs/heads/nightly") == ("main", None)
    pull_request = {"GITHUB_REF": "refs/pull/3/merge", "GITHUB_HEAD_REF": "topic"}
    assert told(tmp_path, **pull_request) == ("topic", "3")


@pytest.mark.parametrize(
    ("variables", "split", "attempt", "shard"),
    [
        ({"GITHUB_RUN_ATTEMPT": "2"}, (None, None), 2, None),
        ({"GITHUB_RUN_ATTEMPT": "two"}, (None, None), None, None),
        ({"CI_NODE_INDEX": "2", "CI_NODE_TOTAL": "5"}, (None, None), None, "2/5"),
        ({"CI_NODE_INDEX": "2", "CI_NODE_TOTAL": "5"}, (1, 3), None, "2/5, 1/3"),
        ({"CI_NODE_TOTAL": "1"}, (1, 1), None, None),
        ({"CI_NODE_INDEX": "9" * 99, "CI_NODE_TOTAL": "5"}, (4, 4), None, "4/4"),
    ],
)
def test_attempts_and_shards(
    tmp_path: Path,
    variables: dict[str, str],
    split: tuple[int | None, int | None],
    attempt: int | None,
    shard: str | None,
) -> None:
    group, splits = split
    job = of_split(ci_job(variables, tmp_path), group=group, splits=splits)
    assert (job.attempt, job.shard) == (attempt, shard)


def test_a_commit_with_an_impossible_time_has_none() -> None:
    for text in ("committer a <b> 99999999999999999999 +0000\n\n", ""):
        assert git_files.described_commit(text) == (None, ())


def test_shards_of_a_run_share_where_they_are_from() -> None:
    first = Environment(commit=COMMIT, branch="main", parents=("1",), shard="1/2", dirty=False,
                        runner="a", python="3.12", started_at="2026")  # fmt: skip
    second = replace(first, shard="2/2", runner="b", dirty=True)
    whole = first.shared_with(second)
    assert whole == replace(first, shard=None, runner=None, dirty=True)
