"""The worker's end of the channel: an answer to all it says, or the news that nobody is there."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from pytest_ttnn_perf.machine.processes import GONE, Channel

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


@dataclass(frozen=True, slots=True)
class Ends:
    """Both ends of a channel."""

    channel: Channel
    other: socket.socket

    def told(self, document: Mapping[str, object]) -> Any:
        """Say something that is answered; return what arrives at the other end."""
        self.other.sendall(b"null\n")
        assert self.channel.send(document) is None
        with self.other.makefile("rb") as lines:
            return json.loads(lines.readline())


@pytest.fixture
def ends() -> Iterator[Ends]:
    """Return a channel and its other end."""
    ours, theirs = socket.socketpair()
    channel = Channel(theirs.detach())
    with ours:
        yield Ends(channel, ours)
    if channel._socket is not None:
        channel._socket.close()


@pytest.mark.parametrize(
    ("answer", "stop"),
    [(b"null\n", None), (b'"caf\\u00e9"\n', "café"), (b"7\n", None)],
)
def test_the_answer_says_why_to_stop(ends: Ends, answer: bytes, stop: str | None) -> None:
    ends.other.sendall(answer)
    assert ends.channel.send({"kind": "Ended", "status": 0}) == stop
    assert ends.other.recv(100) == b'{"kind": "Ended", "status": 0}\n\n'


@pytest.mark.parametrize("last", [b"", b'"eno'], ids=["at once", "in the middle of an answer"])
def test_nobody_there_is_a_reason_to_stop(ends: Ends, last: bytes) -> None:
    ends.other.sendall(last)
    ends.other.shutdown(socket.SHUT_RDWR)
    ends.other.close()
    # Also the next time: a worker has more to say as it ends.
    assert [ends.channel.send({}), ends.channel.send({})] == [GONE, GONE]


def test_a_fork_has_no_say() -> None:
    # A test that forks leaves two processes behind that both think they are the worker.
    source = """if True:
        import os, sys
        from pytest_ttnn_perf.machine.processes import Channel
        channel = Channel(int(sys.argv[1]))
        pid = os.fork()
        if pid == 0:
            os._exit(0 if channel.send({"from": "the fork"}) is None else 1)
        assert os.waitpid(pid, 0)[1] == 0
        channel.send({"from": "the worker"})
    """
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall(b"null\n")
        command = [sys.executable, "-c", source, str(theirs.fileno())]
        subprocess.run(command, pass_fds=[theirs.fileno()], check=True, timeout=300)
        assert ours.recv(1000) == b'{"from": "the worker"}\n\n'


class Odd:
    """Something that a plugin puts on a report."""

    def __repr__(self) -> str:
        return "<odd>"


class Worse:
    """Something that cannot even be shown."""

    def __repr__(self) -> str:
        raise RuntimeError


@pytest.mark.parametrize(
    ("value", "arrives"),
    [
        (Odd(), "<odd>"),
        (Worse(), "<Worse whose text cannot be made: RuntimeError>"),
        ({(1, 2): Odd(), "n": (1, 2.5, None, True)}, {"n": [1, 2.5, None, True]}),
        ({"lone": "\udcff", "nothing": float("inf")}, {"lone": "\udcff", "nothing": float("inf")}),
    ],
    ids=["class", "no repr", "keys", "text"],
)
def test_what_json_cannot_hold_is_told_by_its_text(
    ends: Ends, value: object, arrives: object
) -> None:
    assert ends.told({"report": value}) == {"report": arrives}
