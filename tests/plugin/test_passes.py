"""A pass: workers that end in an odd way, and no folder left for nothing; see also tests/faults."""

from __future__ import annotations

from dataclasses import dataclass, field
from textwrap import dedent
from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf.core.assignment import PassKind
from pytest_ttnn_perf.core.errors import UsageError
from pytest_ttnn_perf.core.settings import Settings
from pytest_ttnn_perf.plugin.workers import Pass, Workers

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pytest_ttnn_perf.plugin.wire import Message

#: Any worker here that is silent for so long is stuck.
PATIENCE_S = 300.0
#: A worker without pytest: it collects what it was assigned, or all, and runs what it is told to.
PRELUDE = """
import os, sys, time
from pytest_ttnn_perf.plugin.wire import *
link = take_link(os.environ)
mine = list(link.assignment.tests or ("a", "b", "c"))
def collect(tests=mine):
    unknown = dict(baselines=None, confirm=None, root=None, identities={})
    return link.send("collected", tests=tests, measured=tests, deselected=[], **unknown)
def begin(test):
    return link.send("started", test=test, location=["file", 0, test])
def run(*tests):
    for test in tests:
        begin(test)
        link.send("finished", test=test, location=["file", 0, test], apart=False)
def close():
    link.send("ended", status=0)
def kill():
    os.kill(os.getpid(), 9)
def raw(line):
    link.channel._socket.sendall(line)
"""


def all_of(messages: Sequence[Message], kind: str) -> list[Message]:
    return [message for message in messages if message.kind == kind]


@dataclass(slots=True)
class Scene:
    """A pass whose workers are small programs, one after another."""

    path: Path
    heard: list[Message] = field(default_factory=list)

    @property
    def folder(self) -> Path:
        return self.path / "passes" / "run"

    def workers(self, *programs: str) -> Workers:
        """Return workers of which the first runs the first program, and so on."""
        following = iter(programs)

        def arguments(_: Path) -> Sequence[str]:
            return ["-c", PRELUDE + dedent(next(following))]

        settings = Settings(timeout=PATIENCE_S)
        return Workers(settings, arguments, self.path, self.folder, print)

    def hear(self, one: Pass) -> None:
        """Run a pass."""
        with one:
            self.heard += one

    def run(self, *programs: str, tests: Sequence[str] | None = None) -> list[Message]:
        """Run a pass; every program must be needed."""
        workers = self.workers(*programs)
        self.hear(Pass(workers, PassKind.WALL, tests))
        assert len(workers.started) == len(programs)
        return self.heard


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    """Return a pass to be run."""
    return Scene(tmp_path)


def test_a_worker_that_died_between_two_tests_got_somewhere(scene: Scene) -> None:
    heard = scene.run("collect(); run('a'); kill()", "collect(); run(*mine); close()")
    assert [message.test for message in all_of(heard, "finished")] == ["a", "b", "c"]
    assert [loss["tests"] for loss in all_of(heard, "lost")] == [[]]


@pytest.mark.parametrize(
    "last",
    ["raw(b'no JSON\\n')", "raw(b'{')", 'raw(b\'{"kind": "Sung"}\\n\')'],
    ids=["damaged", "cut", "no message"],
)
def test_a_worker_whose_stream_broke_after_its_end_is_a_loss(scene: Scene, last: str) -> None:
    heard = scene.run(f"collect(['a']); run('a'); close(); {last}")
    assert [loss["tests"] for loss in all_of(heard, "lost")] == [[]]


def test_an_error_of_who_listens_ends_the_worker_and_leaves_no_folder(scene: Scene) -> None:
    def fail() -> None:
        with Pass(scene.workers("collect(); time.sleep(1000)"), PassKind.WALL, None) as one:
            for event in one:
                raise LookupError(event)

    with pytest.raises(LookupError):
        fail()
    assert not (scene.path / "passes").exists()


def test_a_worker_knows_its_pass_its_folder_and_whether_it_is_the_first(scene: Scene) -> None:
    tells = "collect([link.assignment.kind.name, str(link.assignment.first)]); close()"
    workers = scene.workers(tells, tells)
    for kind in (PassKind.WALL, PassKind.CONFIRM):
        scene.hear(Pass(workers, kind, ["a"]))
    told = [message["tests"] for message in all_of(scene.heard, "collected")]
    assert told == [["WALL", "True"], ["CONFIRM", "False"]]


def test_the_first_worker_that_cannot_be_started_is_an_error(scene: Scene) -> None:
    workers = scene.workers("")
    workers.cwd = scene.path / "nowhere"
    with pytest.raises(UsageError, match=r"^a worker cannot be started: .*'.*/nowhere'$"):
        scene.hear(Pass(workers, PassKind.WALL, None))
    assert not (scene.path / "passes").exists()
