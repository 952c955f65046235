"""What a killed command had begun is undone by the next one, and nothing else is."""

from __future__ import annotations

import hashlib
import json
import shutil
from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf.core.baseline import baseline_path, key_folder
from pytest_ttnn_perf.core.errors import InputError, WriteError
from pytest_ttnn_perf.core.files import write_bytes
from pytest_ttnn_perf.gate import store as store_module
from pytest_ttnn_perf.gate.store import BaselineStore
from tests.faults.amender import FILE, HARDWARE, appending, stored
from tests.faults.test_op_tables import TEST, amend, ops_file, table
from tests.harness.project import run_command
from tests.harness.repository import Repository

if TYPE_CHECKING:
    from pathlib import Path

    from tests.harness.baselines import Desk


class Killed(BaseException):
    """Stands for what no code can do anything about."""


@pytest.fixture
def cut_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Baselines whose writer was killed after the op table, before the baseline itself."""
    root = tmp_path / "baselines"
    amend(root, 100.0)

    def write(file: Path, content: bytes) -> None:
        if file.suffix == ".json":
            raise Killed
        write_bytes(file, content)

    def nothing(_root: Path) -> None:
        pass

    with monkeypatch.context() as patched:
        patched.setattr(store_module, "write_bytes", write)
        patched.setattr(store_module, "put_back", nothing)
        with pytest.raises(Killed):
            amend(root, 200.0)
    assert "200" in ops_file(root).read_text()
    assert (root / ".undo.json").exists()
    return root


def test_who_reads_next_finds_all_as_it_was_and_is_told(
    cut_short: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = BaselineStore(cut_short)
    assert store.ops_of(HARDWARE, TEST) == table(100.0)
    assert not (cut_short / ".undo.json").exists()
    file = baseline_path(cut_short, HARDWARE, FILE)
    assert capsys.readouterr().err == (
        "ttnn-perf: a command was killed while it changed baselines; put back: "
        f"{ops_file(cut_short)}, {file}\n"
    )


def test_one_that_git_tracks_is_refused(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """No command that was killed has left it: it came with the checkout, or may have."""
    BaselineStore(desk.root).amend_keys({HARDWARE: {TEST: lambda _: stored(1)}})
    file = baseline_path(desk.root, HARDWARE, FILE)
    before = file.read_bytes()
    known = {"file": file.relative_to(desk.root).as_posix(), "before": None}
    files = [{**known, "after": hashlib.sha256(before).hexdigest()}]
    undo = desk.root / ".undo.json"
    undo.write_text(json.dumps({"format": 1, "files": files}))
    repository = Repository(desk)
    repository.git("init", "-q")
    repository.git("add", "--force", str(undo))
    repository.commit("theirs")

    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    untold = desk.run("list")
    assert (untold.code, file.read_bytes()) == (3, before)
    assert "git cannot tell whether it came with the checkout" in untold.errors
    monkeypatch.delenv("GIT_TEST_ASSUME_DIFFERENT_OWNER")

    ran = desk.run("list")

    remedy = f"git rm -f -- {undo}"
    why = f"expected what a killed command left, found a file of git: remove it with: {remedy}"
    assert (ran.code, ran.text, ran.errors) == (3, "", f"ttnn-perf: {undo}: {why}")
    assert file.read_bytes() == before
    repository.git(*remedy.split()[1:])
    assert desk.run("list").code == 0


def test_bytes_that_are_no_text_come_back_as_they_were(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    amend(tmp_path, 100.0)
    content = b"op,caf\xe9\n\xff\xfe"
    ops_file(tmp_path).write_bytes(content)

    def write(file: Path, new: bytes) -> None:
        if file.suffix == ".json":
            raise WriteError(file, OSError(28, "No space left on device"))
        write_bytes(file, new)

    monkeypatch.setattr(store_module, "write_bytes", write)
    with pytest.raises(WriteError, match="No space left on device"):
        amend(tmp_path, 200.0)
    assert ops_file(tmp_path).read_bytes() == content


def test_files_that_somebody_changed_since_are_theirs(cut_short: Path) -> None:
    ops_file(cut_short).write_text("of another branch\n")
    file = baseline_path(cut_short, HARDWARE, FILE)
    before = file.read_text()
    BaselineStore(cut_short).find(HARDWARE, TEST)
    assert (ops_file(cut_short).read_text(), file.read_text()) == ("of another branch\n", before)
    assert not (cut_short / ".undo.json").exists()


def test_nothing_but_texts_of_baselines_is_ever_put_back(tmp_path: Path) -> None:
    root = tmp_path / "baselines"
    root.mkdir()
    for place, text, expected in (
        ("../outside.json", "theirs", "expected the path of a baseline or an op table, found"),
        ("/etc/x.json", "theirs", "expected the path of a baseline"),
        ("a/../../b.csv", "theirs", "expected the path of a baseline"),
        ("key/run.sh", "theirs", "expected the path of a baseline"),
        ("a\0.json", "theirs", "expected the path of a baseline"),
        ("a\ud800.json", "theirs", "expected the path of a baseline"),
        ("key/a.json", "\ud800", r"\['before'\]: expected the text of a file, found"),
    ):
        files = [{"file": place, "before": text, "after": None}]
        (root / ".undo.json").write_text(json.dumps({"format": 1, "files": files}))
        with pytest.raises(InputError, match=expected):
            BaselineStore(root).find(HARDWARE, TEST)
    assert not (tmp_path / "outside.json").exists()


def test_nothing_is_put_back_through_a_link(tmp_path: Path) -> None:
    root = tmp_path / "baselines"
    folder = key_folder(root, HARDWARE)
    folder.mkdir(parents=True)
    (folder / "a.json").symlink_to(tmp_path / "outside.json")
    files = [{"file": f"{folder.name}/a.json", "before": "theirs", "after": None}]
    (root / ".undo.json").write_text(json.dumps({"format": 1, "files": files}))
    with pytest.raises(InputError, match=r"a\.json leads out of .*: look at both, and remove it"):
        BaselineStore(root).find(HARDWARE, TEST)
    assert not (tmp_path / "outside.json").exists()


def test_a_damaged_one_is_refused_by_its_name(
    cut_short: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    undo = cut_short / ".undo.json"
    undo.write_text(undo.read_text()[:-20])
    monkeypatch.chdir(cut_short.parent)
    ran = run_command("baseline", "list")
    assert (ran.code, ran.text) == (3, "")
    assert ran.errors.startswith(f"ttnn-perf: {undo}:1: not valid JSON: ")


def test_git_leaves_alone_what_is_temporary(desk: Desk) -> None:
    if shutil.which("git") is None:
        pytest.skip("needs git")
    BaselineStore(desk.root).amend_keys({HARDWARE: {TEST: lambda _: stored(1)}})
    repository = Repository(desk)
    repository.git("init", "-q")
    left = key_folder(desk.root, HARDWARE) / "test_model.ops" / ".test_a.csv.abcd1234.ttnn_perf.new"
    left.parent.mkdir()
    for file in (left, desk.root / ".undo.json"):
        file.touch()
    shown = repository.git("status", "--short", "--untracked-files=all").split()
    assert shown == ["??", f"baselines/{HARDWARE.key}/test_model.json"]


def test_an_ignore_file_of_the_user_stays(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("mine\n")
    BaselineStore(tmp_path).amend_keys({HARDWARE: {TEST: appending(1)}})
    assert (tmp_path / ".gitignore").read_text() == "mine\n"
