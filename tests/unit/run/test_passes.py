"""A pass: workers that end in an odd way, and no folder left for nothing; see also tests/faults."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from textwrap import dedent
from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf.core.errors import UsageError, WriteError
from pytest_ttnn_perf.core.messages import Collected, Ended, Finished, PassKind, Warned
from pytest_ttnn_perf.plugin.workers import Listener, Pass, WorkerLauncher

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pytest_ttnn_perf.core.messages import Message
    from pytest_ttnn_perf.machine.processes import LostWorker

#: Any worker here that is silent for so long is stuck.
PATIENCE_S = 300.0
#: A worker without pytest: it collects what it was assigned, or all, and runs what it is told to.
PRELUDE = """
import os, sys, time
from pytest_ttnn_perf.core.messages import *
from pytest_ttnn_perf.machine.processes import take_link
link = take_link(os.environ)
mine = list(link.assignment.tests or ("a", "b", "c"))
def collect(tests=mine):
    return link.send(Collected(tests, tests, [], []))
def begin(test):
    return link.send(Started(test, ["file", 0, test]))
def run(*tests):
    for test in tests:
        begin(test)
        link.send(Finished(test, ["file", 0, test]))
def close():
    link.send(Ended(0))
def kill():
    os.kill(os.getpid(), 9)
def raw(line):
    link.channel._socket.sendall(line)
"""


@dataclass(slots=True)
class SessionListener(Listener):
    """Keeps what is heard."""

    heard: list[Message] = field(default_factory=list)
    losses: list[LostWorker] = field(default_factory=list)
    stop: str | None = None

    def receive(self, message: Message) -> None:
        self.heard.append(message)

    def worker_lost(self, loss: LostWorker) -> None:
        self.losses.append(loss)


@dataclass(slots=True)
class Scene:
    """A pass whose workers are small programs, one after another."""

    path: Path
    listener: SessionListener = field(default_factory=SessionListener)

    @property
    def folder(self) -> Path:
        return self.path / "passes" / "run"

    def workers(self, *programs: str) -> WorkerLauncher:
        """Return workers of which the first runs the first program, and so on."""
        following = iter(programs)

        def arguments(_: Path) -> Sequence[str]:
            return ["-c", PRELUDE + dedent(next(following))]

        return WorkerLauncher(arguments, self.path, self.folder)

    def run(self, *programs: str, tests: Sequence[str] | None = None) -> SessionListener:
        """Run a pass; every program must be needed."""
        workers = self.workers(*programs)
        assert Pass(PassKind.WALL, workers, self.listener, PATIENCE_S).run(tests) >= 0
        assert len(workers._started) == len(programs)
        return self.listener


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    """Return a pass to be run."""
    return Scene(tmp_path)


def test_a_worker_that_died_between_two_tests_got_somewhere(scene: Scene) -> None:
    listener = scene.run("collect(); run('a'); kill()", "collect(); run(*mine); close()")
    finished = [message.test for message in listener.heard if isinstance(message, Finished)]
    assert finished == ["a", "b", "c"]
    assert [loss.tests for loss in listener.losses] == [()]


def test_a_worker_that_goes_on_after_its_end_has_come_to_it(scene: Scene) -> None:
    warned = "link.send(Warned('late', 'UserWarning', 'file', 1, 'collect', '', None))"
    listener = scene.run(f"collect(['a']); run('a'); close(); {warned}; kill()")
    assert listener.losses == []
    assert isinstance(listener.heard[-1], Warned)
    assert Ended(0) in listener.heard
    assert not (scene.path / "passes").exists()


@pytest.mark.parametrize(
    "last",
    ["raw(b'no JSON\\n')", "raw(b'{')", 'raw(b\'{"kind": "Sung"}\\n\')'],
    ids=["damaged", "cut", "no message"],
)
def test_a_worker_whose_stream_broke_after_its_end_is_a_loss(scene: Scene, last: str) -> None:
    listener = scene.run(f"collect(['a']); run('a'); close(); {last}")
    assert [loss.tests for loss in listener.losses] == [()]


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
