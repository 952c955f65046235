"""States of a working tree."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf.core.errors import UsageError
from pytest_ttnn_perf.experiments import repository as snapshots
from pytest_ttnn_perf.experiments.repository import Repository
from tests.harness.versions import Versions

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def versions(tmp_path: Path) -> Versions:
    found = Versions(tmp_path)
    found.write("kept.py", "one\ntwo\n")
    found.write("gone.py", "")
    found.commit("Start")
    return found


def test_a_state_has_what_is_changed_staged_new_and_gone_and_nothing_is_touched(
    versions: Versions,
) -> None:
    states = Repository(versions.root)
    start = states.now()
    assert start == states.of(versions.git("rev-parse", "HEAD").strip()), "nothing is changed"
    versions.write("kept.py", "one\n2 2\n")
    versions.write("staged.py", "")
    versions.git("add", "staged.py")
    versions.write("a folder/new é.py", "")
    versions.write("__pycache__/model.pyc", "")
    versions.write(".pytest_cache/x", "")
    (versions.root / "gone.py").unlink()
    before = versions.state()

    now = states.now()

    assert versions.state() == before
    changed = {path: tuple(map(bool, ids)) for path, ids in
               states.changed_files(start, now).items()}  # fmt: skip
    assert changed == {
        "kept.py": (True, True),
        "staged.py": (False, True),
        "a folder/new é.py": (False, True),
        "gone.py": (True, False),
    }
    assert states.text(now, "kept.py") == "one\n2 2"
    assert states.now() == now, "the same files are the same state"


def test_large_untracked_files_are_refused_by_name(
    versions: Versions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshots, "LARGEST_UNTRACKED_BYTES", 3)
    versions.write("weights.bin", "much")
    with pytest.raises(UsageError, match=r"such as weights\.bin, to \.gitignore"):
        Repository(versions.root).now()
