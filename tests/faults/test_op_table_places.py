"""Where a baseline says that its op table is: only a file in the folder of its key is one."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import wraps
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from pytest_ttnn_perf.core.baseline import key_folder
from pytest_ttnn_perf.core.errors import WriteError
from pytest_ttnn_perf.gate.store import BaselineStore
from tests.faults.amender import FILE, HARDWARE, stored
from tests.faults.refusals import UNREADABLE, assert_refused
from tests.faults.test_only_files_are_read import (
    dangling,
    folder,
    huge,
    loop,
    pipe,
    unix_socket,
)
from tests.faults.test_op_tables import TEST, amend, table
from tests.faults.test_op_tables import ops_file as table_of
from tests.harness.project import run_command

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pytest_ttnn_perf.gate.store import Change
    from tests.faults.conftest import Scene

#: Reads tables in a process that is not waited for for ever.
READING = """
import sys
from pathlib import Path
from pytest_ttnn_perf.core.errors import InputError
from pytest_ttnn_perf.gate.store import BaselineStore
from tests.faults.amender import HARDWARE
from tests.faults.test_op_tables import TEST
for root in sys.argv[1:]:
    try:
        BaselineStore(Path(root)).ops_of(HARDWARE, TEST)
    except InputError as error:
        print(error)
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder of baselines with one test that has an op table."""
    root = tmp_path / "baselines"
    amend(root, 100.0)
    return root


def baseline_of(root: Path) -> Path:
    (file,) = key_folder(root, HARDWARE).rglob("*.json")
    return file


def refusals(*roots: Path) -> list[str]:
    """Return why the tables are not read; a reader that waits for one fails."""
    done = subprocess.run(
        [sys.executable, "-c", READING, *map(str, roots)], capture_output=True, text=True,
        timeout=300, check=True,
    )  # fmt: skip
    return done.stdout.splitlines()


def test_a_path_that_leaves_the_folder_is_refused_by_its_field(scene: Scene) -> None:
    document = json.loads(scene.baseline.read_text())
    for place in ("/etc/passwd", "../../../secret.csv", "a/../../b.csv", "..", ".", "", "a\0b",
                  "a\ud800b"):  # fmt: skip
        document["tests"]["test_speed"]["ops"] = place
        scene.baseline.write_text(json.dumps(document, indent=2))
        before = scene.on_disk()
        says = (f"{scene.baseline}:", f"found {place!r}",
                "['tests']['test_speed']['ops']: expected the path of a file ")  # fmt: skip
        for arguments in (("gate", "run.json"), ("baseline", "list")):
            assert_refused(run_command(*arguments), code=UNREADABLE, says=says)
        assert scene.on_disk() == before
    assert scene.project.pytest("--ttnn-perf-update=all", "--ttnn-perf-reason=x").code == 4


def link_out(file: Path) -> str:
    target = file.parents[3] / "outside.csv"
    target.write_text(file.read_text())
    file.unlink()
    file.symlink_to(target)
    return f"a link that leads out of it, to {target}"


def folder_link_out(file: Path) -> str:
    outside = file.parents[3] / "outside"
    file.parent.rename(outside)
    file.parent.symlink_to(outside)
    return f"a link that leads out of it, to {outside / file.name}"


def in_its_place(way: Callable[[Path], str]) -> Callable[[Path], str]:
    @wraps(way)
    def replace_with(file: Path) -> str:
        file.unlink()
        return way(file)

    return replace_with


def link_to_a_device(file: Path) -> str:
    file.unlink()
    file.symlink_to("/dev/zero")
    return "a link that leads out of it, to /dev/zero"


WAYS = (link_out, folder_link_out, link_to_a_device,
        *map(in_its_place, (dangling, loop, pipe, folder, unix_socket, huge)))  # fmt: skip


def test_what_is_no_file_of_the_folder_is_never_opened(tmp_path: Path) -> None:
    expected = {}
    for way in WAYS:
        root = tmp_path / way.__name__ / "baselines"
        amend(root, 100.0)
        expected[root] = (
            f"{baseline_of(root)}: ['tests']['test_a']['ops']: expected a file of at most "
            f"{64 * 2**20} bytes in {key_folder(root, HARDWARE)}, found {way(table_of(root))}"
        )
    assert refusals(*expected) == list(expected.values())


@pytest.mark.parametrize("way", WAYS)
def test_nothing_is_written_removed_or_moved_through_it(
    root: Path, way: Callable[[Path], str]
) -> None:
    found = way(table_of(root))
    before = on_disk(root.parent)

    changes: tuple[Change, ...] = (
        lambda _: replace(stored(1), op_table=table(200.0)),
        lambda _: None,
    )
    for change in changes:
        if way is WAYS[-1]:
            break  # a file of its own, however large, may be replaced
        with pytest.raises(WriteError) as raised:
            BaselineStore(root).amend_keys({HARDWARE: {TEST: change}})
        assert str(raised.value).endswith(f", found {found}")
        assert f"{FILE.removesuffix('.py')}.ops/test_a.csv: cannot " in str(raised.value)
    words = ("baseline", "rename", TEST, f"{FILE}::test_b", "--baselines", root)
    assert_refused(run_command(*words), code=UNREADABLE, says=(f", found {found}",))

    assert on_disk(root.parent) == before


def test_links_within_the_folder_and_to_the_folder_are_the_users(root: Path) -> None:
    file = table_of(root)
    other = file.with_name("other.csv")
    file.rename(other)
    file.symlink_to(other.name)
    elsewhere = root.with_name("elsewhere")
    root.rename(elsewhere)
    root.symlink_to(elsewhere)

    assert BaselineStore(root).ops_of(HARDWARE, TEST) == table(100.0)
    amend(root, 200.0)
    assert BaselineStore(root).ops_of(HARDWARE, TEST) == table(200.0)
    assert file.is_symlink()


def on_disk(folder: Path) -> dict[str, object]:
    """Return all that is below a folder: links as such, and what is in files."""
    return {
        str(path): str(path.readlink()) if path.is_symlink()
        else path.read_text() if path.is_file() and path.stat().st_size < 2**20
        else path.lstat().st_mode
        for path in sorted(folder.rglob("*"))
        if path.name not in {".lock", ".gitignore"}
    }  # fmt: skip
