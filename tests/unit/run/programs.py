"""A pass whose workers are small programs: no pytest, no test, only what they say."""

from __future__ import annotations

from dataclasses import dataclass, field
from textwrap import dedent
from typing import TYPE_CHECKING

from pytest_ttnn_perf.records.messages import Finished, PassKind
from pytest_ttnn_perf.run.workers import Listener, Pass, WorkerLauncher

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pytest_ttnn_perf.records.messages import Message
    from pytest_ttnn_perf.run.workers import Loss

#: Any worker here that is silent for so long is stuck.
PATIENCE_S = 60.0
#: A worker without pytest: it collects what it was assigned, or all, and runs what it is told to.
PRELUDE = """
import os, sys, time
from pytest_ttnn_perf.records.messages import *
from pytest_ttnn_perf.processes.channel import take_link
link = take_link(os.environ)
mine = list(link.assignment.tests or ("a", "b", "c"))
def collect(tests=mine):
    return link.send(Collected(tests, tests, [], []))
def begin(test):
    return link.send(Started(test, ["file", 0, test]))
def end(test):
    return link.send(Finished(test, ["file", 0, test]))
def run(*tests):
    return [answer for test in tests for answer in (begin(test), end(test))]
def close():
    link.send(Ended(0))
def kill():
    os.kill(os.getpid(), 9)
def raw(line):
    link.channel._socket.sendall(line)
"""
FINE = "collect(); run(*mine); close()"


@dataclass(slots=True)
class SessionListener(Listener):
    """Keeps what is heard; wants no more once a message of ``stop_at`` came."""

    stop_at: Message | None = None
    heard: list[Message] = field(default_factory=list)
    losses: list[Loss] = field(default_factory=list)
    stop: str | None = None

    def receive(self, message: Message) -> None:
        """Keep a message."""
        self.heard.append(message)
        if message == self.stop_at:
            self.stop = "enough"

    def worker_lost(self, loss: Loss) -> None:
        """Keep a loss."""
        self.losses.append(loss)

    @property
    def lost(self) -> list[tuple[str, ...]]:
        """The tests of each loss."""
        return [tuple(started.test for started in loss.tests) for loss in self.losses]

    @property
    def finished(self) -> list[str]:
        """The tests that came to their end."""
        return [message.test for message in self.heard if isinstance(message, Finished)]


@dataclass(slots=True)
class Scene:
    """A pass whose workers are programs, one after another."""

    path: Path
    listener: SessionListener = field(default_factory=SessionListener)
    silence_s: float = PATIENCE_S
    left: tuple[str, ...] = ()

    @property
    def folder(self) -> Path:
        """Where the workers of this run have their folders."""
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
        one = Pass(PassKind.WALL, workers, self.listener, self.silence_s)
        assert one.run(tests) >= 0
        self.left = one.left
        assert len(workers._started) == len(programs)
        return self.listener

    def kept(self) -> list[str]:
        """Return the folders that are still there."""
        return sorted(folder.name for folder in self.folder.glob("*"))
