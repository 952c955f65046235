"""The orchestrator's end: what a worker says is heard in order, and its end is known."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf.processes import worker as child_module
from pytest_ttnn_perf.processes.worker import start
from tests.unit.processes.script import FOR_EVER, started

if TYPE_CHECKING:
    from pytest_ttnn_perf.processes.worker import WorkerProcess

#: Any worker here that is silent for so long is stuck.
PATIENCE_S = 60.0


def heard(child: WorkerProcess, *, silence_s: float = PATIENCE_S) -> tuple[list[object], str]:
    """Hear a worker out; return what it said, and how it ended."""
    with child:
        documents = list(child.documents(silence_s=silence_s))
        return documents, str(child.ending(patience_s=silence_s))


def test_the_worker_waits_until_the_next_document_is_asked_for(tmp_path: Path) -> None:
    went_on = tmp_path / "went on"
    with started(tmp_path, "say(1)\nopen('went on', 'w').close()\nsay(2)") as child:
        documents = child.documents(silence_s=PATIENCE_S)
        assert next(documents) == 1
        time.sleep(0.1)
        assert not went_on.exists()
        assert next(documents) == 2
        assert went_on.exists()


def test_the_reason_to_stop_is_in_the_next_answer(tmp_path: Path) -> None:
    with started(tmp_path, "say(say('first'))\nsay(say('then'))") as child:
        said = []
        for document in child.documents(silence_s=PATIENCE_S):
            said.append(document)
            child.stop = "enough" if document == "then" else None
    assert said == ["first", None, "then", "enough"]


def test_documents_in_pieces_and_several_at_once_are_told_apart(tmp_path: Path) -> None:
    source = """
        for piece in ('[1', ']\\n', '"caf\\u00e9"\\n"two"\\n"th', 'ree"\\n'):
            for byte in piece.encode():
                send(bytes([byte]))
            time.sleep(0.02)
        for _ in range(4):
            answers.readline()
    """
    assert heard(started(tmp_path, source))[0] == [[1], "café", "two", "three"]


def test_a_worker_that_dies_before_its_answer_is_told_as_dead(tmp_path: Path) -> None:
    source = "send(b'1\\n'); os.kill(os.getpid(), signal.SIGKILL)"
    assert heard(started(tmp_path, source)) == ([1], "was killed by SIGKILL")


def test_a_document_that_was_cut_is_not_told_but_the_cut_is(tmp_path: Path) -> None:
    documents, ending = heard(started(tmp_path, "say(1); send(b'[2, 3')"))
    assert (documents, ending) == ([1], "ended with exit code 0, in the middle of a message")


def test_each_document_is_a_sign_of_life(tmp_path: Path) -> None:
    child = started(tmp_path, "for n in range(5): time.sleep(0.7); say(n)")
    began = time.monotonic()
    assert heard(child, silence_s=3)[1] == "ended with exit code 0"
    assert time.monotonic() - began > 3


def test_a_worker_that_closed_its_channel_has_only_so_long_to_end(tmp_path: Path) -> None:
    with started(tmp_path, f"say(1); answers.close(); channel.close(); {FOR_EVER}") as child:
        assert list(child.documents(silence_s=PATIENCE_S)) == [1]
        ending = child.ending(patience_s=0.5)
    assert str(ending) == "hung: no sign of life for 0.5 s, killed"


def test_a_worker_that_is_dead_is_not_heard_through_its_child(tmp_path: Path) -> None:
    # The fork has the channel, too: it does not end with the worker.
    source = f"""
        say(1)
        if os.fork() == 0:
            {FOR_EVER}
        os._exit(5)
    """
    assert heard(started(tmp_path, source), silence_s=0) == ([1], "ended with exit code 5")


def test_a_worker_that_cannot_be_started_leaves_no_descriptor_behind(tmp_path: Path) -> None:
    def command(_: int) -> list[str]:
        return [str(tmp_path / "no such program")]

    before = _descriptors()
    for _ in range(3):
        with pytest.raises(FileNotFoundError):
            start(command, cwd=tmp_path, environment={}, log=tmp_path / "log", shown=True)
    assert _descriptors() == before


def test_a_worker_that_has_ended_leaves_no_descriptor_behind(tmp_path: Path) -> None:
    before = _descriptors()
    for shown in (True, False):
        heard(started(tmp_path, "say(1)", shown=shown))
    assert _descriptors() == before


def _descriptors() -> int:
    folder = Path("/proc/self/fd")
    if not folder.is_dir():
        pytest.skip("no /proc here to count descriptors in")
    return len(list(folder.iterdir()))


class Stop(Exception):  # noqa: N818 (not an error)
    """Ends a run in the middle, as Ctrl-C does."""


@pytest.mark.parametrize(
    ("ignored", "code"),
    [("signal.SIGINT", -15), ("signal.SIGINT, signal.SIGTERM", -9)],
    ids=["Ctrl-C", "SIGTERM too"],
)
def test_a_worker_that_ignores_a_signal_gets_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ignored: str, code: int
) -> None:
    monkeypatch.setattr(child_module, "_GRACE_S", 0.2)
    # One that ends by the signal must have all the time it takes on a busy machine.
    monkeypatch.setattr(child_module, "_LAST_GRACE_S", 0.2 if code == -9 else PATIENCE_S)
    source = f"""
        for number in ({ignored},):
            signal.signal(number, signal.SIG_IGN)
        send(b'"now"\\n')
        {FOR_EVER}
    """
    child = started(tmp_path, source)
    assert next(child.documents(silence_s=PATIENCE_S)) == "now"
    with pytest.raises(Stop), child:
        raise Stop
    assert child.process.returncode == code
