"""A pass: as many workers as it takes, never one for nothing, and no folder left for nothing."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf._base.errors import UsageError, WriteError
from pytest_ttnn_perf.records.messages import Collected, Ended, Finished, PassKind, Warned
from pytest_ttnn_perf.run.workers import Pass, WorkerLauncher
from tests.unit.run.programs import FINE, PATIENCE_S, Scene, SessionListener

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_ttnn_perf.records.messages import Message


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    """Return a pass to be run."""
    return Scene(tmp_path)


def test_tests_that_ran_side_by_side_are_all_lost(scene: Scene) -> None:
    listener = scene.run("collect(); begin('a'); begin('b'); begin('c'); end('b'); kill()")
    assert listener.lost == [("a", "c")]
    assert scene.left == ()


def test_a_later_worker_that_gets_nowhere_is_the_last(scene: Scene) -> None:
    listener = scene.run("collect(); begin('a'); kill()", "kill()")
    assert (listener.lost, scene.left) == ([("a",), ()], ("b", "c"))


def test_a_worker_that_died_between_two_tests_got_somewhere(scene: Scene) -> None:
    listener = scene.run("collect(); run('a'); kill()", FINE)
    assert listener.finished == ["a", "b", "c"]
    assert listener.lost == [()]


def test_a_worker_is_told_when_the_listener_wants_no_more(scene: Scene) -> None:
    scene.listener.stop_at = Finished("a", ["file", 0, "a"])
    listener = scene.run(
        "answers = [collect(), *run('a', 'b')]; collect([str(a) for a in answers]); close()"
    )
    told = [message.tests for message in listener.heard if isinstance(message, Collected)]
    assert told[1] == ["None", "None", "enough", "enough", "enough"]


def test_a_worker_that_goes_on_after_its_end_has_come_to_it(scene: Scene) -> None:
    warned = "link.send(Warned('late', 'UserWarning', 'file', 1, 'collect', '', None))"
    listener = scene.run(f"collect(['a']); run('a'); close(); {warned}; kill()")
    assert listener.losses == []
    assert isinstance(listener.heard[-1], Warned)
    assert Ended(0) in listener.heard
    assert scene.kept() == []


@pytest.mark.parametrize("last", ["raw(b'no JSON\\n')", "raw(b'{')"], ids=["damaged", "cut"])
def test_a_worker_whose_stream_broke_after_its_end_is_a_loss(scene: Scene, last: str) -> None:
    listener = scene.run(f"collect(['a']); run('a'); close(); {last}")
    assert listener.lost == [()]


def test_an_error_of_the_listener_ends_the_worker_and_leaves_no_folder(scene: Scene) -> None:
    class Failing(SessionListener):
        def receive(self, message: Message) -> None:
            raise LookupError(message)

    scene.listener = Failing()
    with pytest.raises(LookupError):
        scene.run("collect(); time.sleep(1000)")
    assert not (scene.path / "passes").exists()


def test_a_worker_knows_its_pass_its_folder_and_whether_it_is_the_first(scene: Scene) -> None:
    tells = "collect([link.assignment.kind.name, str(link.assignment.first)]); close()"
    workers = scene.workers(tells, tells)
    for kind in (PassKind.WALL, PassKind.CONFIRM):
        Pass(kind, workers, scene.listener, PATIENCE_S).run(["a"])
    told = [message.tests for message in scene.listener.heard if isinstance(message, Collected)]
    assert told == [["WALL", "True"], ["CONFIRM", "False"]]


def test_the_first_worker_that_cannot_be_started_is_an_error(scene: Scene) -> None:
    workers = WorkerLauncher(lambda _: ["-c", ""], scene.path / "nowhere", scene.folder)
    first = Pass(PassKind.WALL, workers, scene.listener, PATIENCE_S)
    with pytest.raises(UsageError, match=r"^a worker cannot be started: .*'.*/nowhere'$"):
        first.run(None)
    assert not (scene.path / "passes").exists()


def test_a_folder_that_cannot_be_made_is_named(scene: Scene) -> None:
    (scene.path / "passes").write_text("in the way")
    first = Pass(PassKind.WALL, scene.workers(), scene.listener, PATIENCE_S)
    with pytest.raises(WriteError, match=r"passes/run/1-wall: cannot write: Not a directory$"):
        first.run(None)


def test_the_assignment_is_kept_beside_the_log_of_a_lost_worker(scene: Scene) -> None:
    scene.run("collect(); begin('caf\\u00e9'); kill()", tests=["caf\u00e9"])
    assignment = json.loads((scene.folder / "1-wall" / "assignment.json").read_text())
    assert assignment["tests"] == ["caf\u00e9"]


def test_the_folders_of_another_run_are_left_alone(scene: Scene) -> None:
    other = scene.path / "passes" / "other" / "1-wall"
    other.mkdir(parents=True)
    scene.run(FINE)
    assert list((scene.path / "passes").iterdir()) == [other.parent]


def test_runs_at_the_same_time_do_not_take_folders_from_each_other(tmp_path: Path) -> None:
    def make_and_discard(name: str) -> None:
        workers = WorkerLauncher(lambda _: [], tmp_path / "nowhere", tmp_path / "passes" / name)
        for _ in range(200):
            # There is no such folder to start it in: its own is discarded again.
            with pytest.raises(UsageError):
                workers.start(PassKind.WALL, None)

    with ThreadPoolExecutor() as pool:
        assert list(pool.map(make_and_discard, "abcd")) == [None] * 4
    assert not (tmp_path / "passes").exists()
