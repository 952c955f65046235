"""A commit beside the working tree: complete, and gone in the end, whoever removes it."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from pytest_ttnn_perf.core.errors import InputError, UsageError
from pytest_ttnn_perf.machine.git import Git
from pytest_ttnn_perf.machine.repository import Repository, remove_leftovers, temporary_checkout
from tests.harness.versions import Versions


@pytest.fixture
def versions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Versions:
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    versions = Versions(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    versions.model(a={"latency": 1.0})
    versions.commit("Start")
    return versions


def test_the_commit_is_there_under_the_projects_name_and_then_gone(versions: Versions) -> None:
    versions.model(a={"latency": 2.0})
    versions.git("add", "--all")
    before = versions.state()
    with temporary_checkout(versions.root, "HEAD") as tree:
        assert tree.name == "project"
        assert not tree.is_relative_to(versions.root)
        assert "1.0" in (tree / "src/model.py").read_text()
        folder = tree / "made by a test"
        folder.mkdir()
        (folder / "read-only").touch()
        folder.chmod(0o500)
        assert remove_leftovers(versions.root) == 0, "it is in use"
        assert tree.exists()
    assert versions.state() == before
    assert versions.left_behind() == []


def test_hooks_and_variables_of_the_user_have_no_part_in_it(
    versions: Versions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hook of git's has an index of its own in the environment: it must stay as it is."""
    hook = versions.root / ".git/hooks/post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {versions.path}/hooked\n")
    hook.chmod(0o755)
    index = versions.path / "index"
    shutil.copy(versions.root / ".git/index", index)
    index.write_bytes(content := index.read_bytes()[:-1] + b"?")
    monkeypatch.setenv("GIT_INDEX_FILE", str(index))
    monkeypatch.setenv("GIT_DIR", str(versions.root / ".git"))
    with temporary_checkout(versions.root, "HEAD") as tree:
        assert (tree / "test_model.py").exists()
    assert index.read_bytes() == content
    assert not (versions.path / "hooked").exists()


@pytest.mark.parametrize("cleared", [True, False])
def test_what_a_killed_process_left_is_removed_by_the_next(
    versions: Versions, cleared: bool
) -> None:
    """Also where the system has cleared the folder away, and only git knows of it."""
    tree = versions.killed()
    assert tree.is_dir()
    if cleared:
        shutil.rmtree(tree.parent)
    assert len(versions.left_behind()) == (1 if cleared else 2)
    assert remove_leftovers(versions.root) == 1
    assert not tree.parent.exists()
    assert versions.left_behind() == []


def test_what_is_not_ours_stays(versions: Versions) -> None:
    """Even with a name like ours: only the marker counts. And what is gone may come back."""
    there = versions.path / "tmp" / "ttnn-perf-ab-abcdefgh" / "project"
    away = versions.path / "disk that is off" / "project"
    for place in (there, away):
        versions.git("worktree", "add", "--quiet", "--detach", str(place))
    shutil.rmtree(away.parent)
    assert remove_leftovers(versions.root) == 0
    assert (there / "test_model.py").exists()
    assert str(away) in versions.git("worktree", "list")


def test_what_another_process_uses_stays(versions: Versions) -> None:
    command, environment = versions.checking_out("wait")
    with subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        tree = Path(other.stdout.readline().strip())
        assert remove_leftovers(versions.root) == 0
        assert (tree / "test_model.py").exists()
        other.communicate("")
    assert versions.left_behind() == []


@pytest.fixture
def submodule(versions: Versions) -> Path:
    """A submodule that has moved on since the commit."""
    source = Versions(versions.path / "lib")
    source.write("weights.txt", "first")
    source.commit("First")
    versions.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add",
                 str(source.root), "lib")  # fmt: skip
    versions.commit("With a library")
    place = versions.root / "lib"
    (place / "weights.txt").write_text("second")
    return place


def test_submodules_are_checked_out_from_what_is_here(versions: Versions, submodule: Path) -> None:
    with temporary_checkout(versions.root, "HEAD") as tree:
        assert (tree / "lib/weights.txt").read_text() == "first"
    assert Git(submodule).run("worktree", "list").count("\n") == 1
    assert (submodule / "weights.txt").read_text() == "second"
    assert versions.left_behind() == []


def test_a_link_in_the_place_of_a_submodule_leads_to_no_repository(
    versions: Versions, submodule: Path
) -> None:
    """Someone else's link would have us change a repository that is not of this one."""
    other = Versions(versions.path / "other")
    other.write("weights.txt", "theirs")
    other.commit("First")
    commit = other.git("rev-parse", "HEAD").strip()
    versions.git("update-index", "--cacheinfo", f"160000,{commit},lib")
    versions.git("commit", "--quiet", "-m", "Of another")
    shutil.rmtree(submodule)
    submodule.symlink_to(other.root)
    with temporary_checkout(versions.root, "HEAD") as tree:
        assert not (tree / "lib" / "weights.txt").exists()
        assert Git(other.root).run("worktree", "list").count("\n") == 1


def test_commit_that_a_submodule_does_not_have_is_told_with_the_remedy(
    versions: Versions, submodule: Path
) -> None:
    absent = "1" * 40
    versions.git("update-index", "--cacheinfo", f"160000,{absent},lib")
    versions.git("commit", "--quiet", "-m", "Ahead")
    with pytest.raises(InputError) as told, temporary_checkout(versions.root, "HEAD"):
        pass
    assert str(told.value) == (
        f"{submodule}: the submodule does not have commit {absent[:12]}, which is asked for: "
        f"git -C {submodule} fetch"
    )
    assert versions.left_behind() == []


def test_files_that_are_not_committed_are_counted(versions: Versions) -> None:
    repository = Repository.around(versions.root / "src")
    assert repository.root == versions.root
    clean = repository.working_tree()
    assert (clean.commit, clean.changed, clean.untracked) == (repository.commit("work"), 0, 0)
    assert clean.commit is not None
    assert clean.commit.subject == "Start"
    versions.model(a={"latency": 2.0})
    versions.write("staged.py", "")
    versions.git("add", "staged.py")
    versions.write("untracked.py", "")
    tree = repository.working_tree()
    assert (tree.changed, tree.untracked) == (2, 1)
    assert clean.commit is not None
    assert repository.differs_from(clean.commit, ["src", "test_model.py"]) == ("src",)


def test_history_is_told_by_first_parents_oldest_first(versions: Versions) -> None:
    """A merge is one commit: what its branch has is not listed."""
    start = Repository(versions.root).commit("HEAD")
    versions.git("checkout", "--quiet", "-b", "side")
    versions.model(a={"latency": 2.0})
    versions.commit("On the side")
    versions.git("checkout", "--quiet", "work")
    versions.write("notes.txt", "")
    versions.commit("On the way")
    versions.git("merge", "--quiet", "--no-ff", "-m", "Merge the side", "side")
    repository = Repository(versions.root)

    found = repository.between(start, repository.commit("HEAD"))

    assert [each.subject for each in found] == ["On the way", "Merge the side"]
    assert [len(each.parents) for each in found] == [1, 2]
    assert found[0].date == "2026-11-16T10:00:00+00:00"
    assert found[1] == repository.commit("HEAD")
    assert repository.between(start, start) == []


def test_what_is_no_ancestor_is_refused_with_the_one_that_is(versions: Versions) -> None:
    repository = Repository(versions.root)
    start = repository.commit("HEAD")
    for branch in ("one", "two"):
        versions.git("checkout", "--quiet", "-b", branch, start.id)
        versions.write(branch, "")
        versions.commit(branch)
    one, two = (repository.commit(name) for name in ("one", "two"))
    with pytest.raises(UsageError) as told:
        repository.between(one, two)
    common = f"try the commit where they part: {start.id[:12]}"
    assert str(told.value) == f"{one.short} is not an ancestor of {two.short}: {common}"


def test_a_subject_that_would_paint_the_terminal_is_spelt_out(versions: Versions) -> None:
    start = Repository(versions.root).commit("HEAD")
    versions.write("notes.txt", "")
    versions.commit("Red \x1b[31m alert")
    repository = Repository(versions.root)
    (only,) = repository.between(start, repository.commit("HEAD"))
    assert only == repository.commit("HEAD")
    assert only.subject == "Red \\x1b[31m alert"
