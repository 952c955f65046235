"""The user's words and variables, as they hold in another version of the project."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf.core.errors import UsageError
from pytest_ttnn_perf.experiments.rounds import Move

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def move(tmp_path: Path) -> Move:
    """Two versions with tests in a folder, in which the user stands; one file is new."""
    for side in ("root", "tree"):
        (tmp_path / side / "models").mkdir(parents=True)
        (tmp_path / side / "models/test_a.py").touch()
    (tmp_path / "root/models/test_new.py").touch()
    return Move(tmp_path / "root", tmp_path / "tree", tmp_path / "root/models")


def test_words_stay_as_they_are_where_they_hold_there(move: Move) -> None:
    words = ["-k", "a or b", "-x", "test_a.py", "--tb=no", "no_such_file.py"]
    assert move.argv(words) == (tuple(words), False)
    assert move.there == move.tree / "models"


def test_paths_into_the_project_become_paths_into_the_other(move: Move) -> None:
    root, tree = move.root, move.tree
    moved, _ = move.argv(
        [f"{root}/models/test_a.py", f"--rootdir={root}", f"{root}-2/x", "-c", f"{root}/x"]
    )
    assert moved == (
        f"{tree}/models/test_a.py", f"--rootdir={tree}", f"{root}-2/x", "-c", f"{tree}/x",
    )  # fmt: skip


def test_tests_are_chosen_by_their_ids_where_only_their_file_is_sure_to_be_there(
    move: Move,
) -> None:
    moved, narrowed = move.argv(["test_a.py::test_x[8]", "test_new.py", "-v"])
    assert moved == ("test_a.py", "-v")
    assert narrowed
    chosen, _ = move.argv(["test_a.py::test_x[8]", "test_new.py", "-v"], chooses=True)
    assert chosen == ("test_a.py::test_x[8]", "-v")


def test_values_of_options_are_no_tests(move: Move) -> None:
    moved, narrowed = move.argv(["--ignore", "test_new.py", "-k", "test_new.py"])
    assert moved == ("--ignore", "test_new.py", "-k", "test_new.py")
    assert not narrowed


def test_nothing_is_left_to_run_is_told_and_not_taken_for_everything(move: Move) -> None:
    with pytest.raises(UsageError, match=r"does not have test_new\.py, test_new\.py::test_y$"):
        move.argv(["-x", "test_new.py", "test_new.py::test_y"])


def test_modules_are_looked_for_in_the_other_project(move: Move) -> None:
    variables = {"PYTHONPATH": f"src:{move.root}/lib:/usr/lib", "PWD": str(move.cwd), "HOME": "h"}
    assert move.environment(variables) == {
        "PYTHONPATH": f"src:{move.tree}/lib:/usr/lib",
        "PWD": str(move.there),
        "HOME": "h",
    }
    assert move.environment({"HOME": "h"}) == {"HOME": "h"}
