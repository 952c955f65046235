"""What a checkout may hold in the place of a file: it is refused by name, and never opened."""

from __future__ import annotations

import json
import os
import shutil
import socket
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf.experiments.repository import remove_leftovers
from tests.harness.baselines import Desk, stored, times
from tests.harness.repository import Repository

if TYPE_CHECKING:
    from tests.harness.project import Project

A = "test_m.py::test_a"
KEY = "wormhole_b0-n150-1x1"
FILE = f"baselines/{KEY}/test_m.json"
#: Runs commands in one process that is not waited for for ever, and has no memory to fill.
RUNNING = """
import json, os, resource, sys
from tests.harness.project import run_command
resource.setrlimit(resource.RLIMIT_AS, (4 * 2**30, 4 * 2**30))
for line in sys.stdin:
    folder, words = json.loads(line)
    os.chdir(folder)
    ran = run_command(*words)
    print(json.dumps([ran.code, ran.errors]), flush=True)
"""


def pipe(file: Path) -> str:
    os.mkfifo(file)
    return "a named pipe"


def device(file: Path) -> str:
    file.symlink_to("/dev/zero")
    return "a device"


def dangling(file: Path) -> str:
    file.symlink_to(file.with_name("nothing"))
    return "a link that leads nowhere"


def loop(file: Path) -> str:
    file.symlink_to(file.name)
    return "a link that leads nowhere"


def folder(file: Path) -> str:
    file.mkdir()
    return "a folder"


def unix_socket(file: Path) -> str:
    descriptor = os.open(file.parent, os.O_RDONLY)  # the path itself may be too long for a socket
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(f"/proc/self/fd/{descriptor}/{file.name}")
    os.close(descriptor)
    return "a socket"


def huge(file: Path) -> str:
    with file.open("wb") as stream:
        stream.truncate(2**40)  # of which the disk holds nothing
    return f"{2**40} bytes"


WAYS = (pipe, device, dangling, loop, folder, unix_socket, huge)


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """A folder with a baseline and a record."""
    (tmp_path / "desk").mkdir()
    monkeypatch.chdir(tmp_path / "desk")
    desk = Desk(tmp_path / "desk")
    desk.store(A, stored(times(10.0)))
    desk.record(tests={A: [10.0, 10.1, 10.2]})
    return desk


def ran_all(commands: list[tuple[Path, list[str]]]) -> list[tuple[int, str]]:
    """Return exit code and errors of each command, given in its folder."""
    lines = "".join(f"{json.dumps([str(folder), words])}\n" for folder, words in commands)
    done = subprocess.run(
        [sys.executable, "-c", RUNNING], input=lines,
        capture_output=True, text=True, timeout=300, check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return [tuple(json.loads(line)) for line in done.stdout.splitlines()]


#: Where it stands, and which commands would read it there.
PLACES: dict[str, list[list[str]]] = {
    "theirs.json": [
        ["gate", "theirs.json"], ["show", "theirs.json"], ["merge", "run.json", "theirs.json"],
        ["compare", "run.json", "theirs.json"], ["baseline", "accept", "theirs.json"],
        ["baseline", "prune", "theirs.json"], ["check", "--csv", "theirs.json"],
        ["check", "--db", "theirs.json"], ["check", "--log", "theirs.json"],
        ["analyze", "cores", "--csv", "theirs.json"],
        ["baseline", "merge", "theirs.json", "run.json", "run.json"],
    ],
    FILE: [
        ["gate", "run.json"], ["baseline", "list"], ["baseline", "accept", "run.json"],
        ["baseline", "rename", A, "test_m.py::test_b"],
    ],
    "ttnn_perf.toml": [["baseline", "list"]],
}  # fmt: skip


def test_it_is_refused_in_the_place_of_whatever_is_read(desk: Desk) -> None:
    """All commands are given in one process: to start one takes longer than they all do."""
    expected, commands = [], []
    for way in WAYS:
        for place, all_words in PLACES.items():
            # A folder with captures is compared: what is wrong with this one is that it has none.
            words_of = [w for w in all_words if way.__name__ != "folder" or w[0] != "compare"]
            folder = desk.path.with_name(f"{way.__name__}-{Path(place).stem}")
            shutil.copytree(desk.path, folder)
            (folder / place).unlink(missing_ok=True)
            found = way(folder / place)
            if way is device and place == FILE:
                found = "a link that leads out of it, to /dev/zero"
            expected += [(words, Path(place).name, found) for words in words_of]
            commands += [(folder, words) for words in words_of]
        # Settings that are shared with others are none then.
        folder = desk.path.with_name(f"{way.__name__}-pyproject")
        shutil.copytree(desk.path, folder)
        way(folder / "pyproject.toml")
        commands.append((folder, ["baseline", "list"]))
        expected.append((["baseline", "list"], "", ""))
    before = sorted(desk.path.parent.rglob("*"))

    for (words, name, found), (code, errors) in zip(expected, ran_all(commands), strict=True):
        if not name:
            assert (code, errors) == (0, "")
            continue
        assert code == 3, (words, errors)
        assert f"{name}: expected a file" in errors, words
        assert errors.endswith(f", found {found}\n"), words
    assert sorted(desk.path.parent.rglob("*")) == before


def test_it_is_refused_beside_a_database(desk: Desk) -> None:
    commands = []
    for way in (pipe, device, loop, unix_socket):
        file = desk.path / f"{way.__name__}.sqlite"
        sqlite3.connect(file).execute("CREATE TABLE operations (id)").close()
        way(file.with_name(f"{file.name}-wal"))
        commands.append((desk.path, ["check", "--db", file.name]))
    for code, errors in ran_all(commands):
        assert code == 3
        assert "Traceback" not in errors


def test_a_run_does_not_wait_for_a_pipe_that_pytest_leaves_alone(project: Project) -> None:
    project.write(test_m="def test_a():\n    pass\n")
    os.mkfifo(project.path / "pyproject.toml")
    assert project.pytest_process("-p", "no:cacheprovider").code == 0


def test_a_baseline_is_not_written_through_a_link(desk: Desk, tmp_path: Path) -> None:
    """Neither one that leads to a file nor one that would make one, of a file or of a folder."""
    target = tmp_path / "outside.json"
    file = desk.path / FILE
    for exists in (True, False):
        if exists:
            file.rename(target)
        else:
            target.unlink()
            file.unlink()
        file.symlink_to(target)
        before = target.read_bytes() if exists else None
        ran = desk.run("accept", "run.json", "--update", "all", "--reason", "x")
        assert ran.code == 3
        assert ran.errors.endswith(
            f"test_m.json: expected a file in {desk.path / 'baselines'}, "
            f"found a link that leads out of it, to {target}"
        )
        assert (target.read_bytes() if target.exists() else None) == before

    shutil.rmtree(desk.path / "baselines" / KEY)
    (desk.path / "baselines" / KEY).symlink_to(tmp_path / "outside")
    (tmp_path / "outside").mkdir()
    assert desk.run("accept", "run.json").code == 3
    assert list((tmp_path / "outside").iterdir()) == []


@pytest.mark.parametrize(("name", "exists"), [(".lock", True), (".gitignore", False)])
def test_what_we_keep_beside_baselines_is_not_written_through_a_link(
    desk: Desk, tmp_path: Path, name: str, exists: bool
) -> None:
    target = tmp_path / "outside"
    if exists:
        target.write_text("precious")
    (desk.path / "baselines" / name).unlink(missing_ok=True)
    (desk.path / "baselines" / name).symlink_to(target)
    desk.record(tests={"test_m.py::test_new": [1.0, 1.0]})

    ran = desk.run("accept", "run.json")

    assert ran.code == 1
    assert f"baselines/{name}: cannot write: expected a file, found a link" in ran.errors
    assert (target.read_text() if target.exists() else None) == ("precious" if exists else None)


def test_a_folder_of_baselines_that_leads_nowhere_is_not_made(desk: Desk, tmp_path: Path) -> None:
    shutil.rmtree(desk.path / "baselines")
    (desk.path / "baselines").symlink_to(tmp_path / "outside")
    ran = desk.run("accept", "run.json")
    assert ran.code == 1
    assert "baselines: cannot write: expected a folder, found a link to nothing" in ran.errors
    assert not (tmp_path / "outside").exists()


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_attributes_are_not_written_through_a_link(desk: Desk, tmp_path: Path) -> None:
    Repository(desk).git("init", "-q")
    (desk.path / ".gitattributes").symlink_to(tmp_path / "outside")
    ran = desk.run("install-merge-driver")
    assert (ran.code, ran.errors) == (
        3,
        f"ttnn-perf: {desk.path}/.gitattributes: expected a file in {desk.path}, found a link that "
        f"leads out of it, to {tmp_path / 'outside'}",
    )
    assert not (tmp_path / "outside").exists()


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_an_op_table_in_conflict_is_not_written_through_a_link(desk: Desk, tmp_path: Path) -> None:
    """Git puts our side, a link, into the working tree; theirs is a file."""
    target = tmp_path / "outside.csv"
    table = desk.path / "baselines" / KEY / "test_m.ops" / "test_a.csv"
    table.parent.mkdir()
    repository = Repository(desk)
    repository.git("init", "-q", "-b", "main")
    repository.commit("first")
    repository.git("branch", "other")
    table.symlink_to(target)
    repository.commit("ours")
    repository.git("checkout", "-q", "other")
    table.parent.mkdir(exist_ok=True)
    table.write_text("theirs")
    repository.commit("theirs")
    repository.git("checkout", "-q", "main")
    place = str(table.relative_to(desk.path))
    sides = [
        f"100644 {repository.git('rev-parse', f'{branch}:{place}').strip()} {stage}\t{place}\n"
        for stage, branch in ((2, "main"), (3, "other"))
    ]
    repository.git("rm", "-q", "--cached", place)
    subprocess.run(["git", "update-index", "--index-info"], input="".join(sides), text=True,
                   cwd=desk.path, check=True)  # fmt: skip

    ran = desk.run("merge", "--path", place, "--take", "theirs")

    assert ran.code == 3
    assert f"found a link that leads out of it, to {target}" in ran.errors
    assert not target.exists()


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_leftovers_of_others_are_not_looked_at(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Repository(desk).git("init", "-q")
    left = tmp_path / "tmp" / "ttnn-perf-ab-abcdefgh"
    left.mkdir(parents=True)
    monkeypatch.setattr("tempfile.tempdir", str(left.parent))
    os.mkfifo(left / "made-by-ttnn-perf-ab.json")
    assert remove_leftovers(desk.path) == 0
    (left / "made-by-ttnn-perf-ab.json").unlink()
    (left / "made-by-ttnn-perf-ab.json").write_text('{"repositories": []}')
    monkeypatch.setattr("os.geteuid", lambda: os.getuid() + 1)
    assert remove_leftovers(desk.path) == 0
    assert left.exists()
