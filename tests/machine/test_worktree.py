"""A commit beside the working tree: complete, and gone in the end, whoever removes it."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf.experiments.repository import remove_leftovers, temporary_checkout
from pytest_ttnn_perf.machine.git import Git
from tests.harness.versions import Versions

if TYPE_CHECKING:
    from pathlib import Path


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
