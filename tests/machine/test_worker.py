"""A child: what it says, and what it prints."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from pytest_ttnn_perf.machine import processes
from pytest_ttnn_perf.machine.processes import WorkerProcess, tail
from tests.machine.script import FOR_EVER, started

#: Any worker here that is silent for so long is stuck.
PATIENCE_S = 300.0


def heard(child: WorkerProcess, *, silence_s: float = PATIENCE_S) -> tuple[list[object], str]:
    """Hear a worker out; return what it said, and how it ended."""
    with child:
        documents = list(child.documents(silence_s=silence_s))
        return documents, str(child.ending(patience_s=silence_s))


def test_the_worker_waits_until_the_next_document_is_asked_for_and_hears_why_to_stop(
    tmp_path: Path,
) -> None:
    went_on = tmp_path / "went on"
    source = "answer = say(1)\nopen('went on', 'w').close()\nsay(answer)\nsay(say(2))"
    with started(tmp_path, source) as child:
        documents = child.documents(silence_s=PATIENCE_S)
        assert next(documents) == 1
        time.sleep(0.1)
        assert not went_on.exists()
        assert next(documents) is None
        assert went_on.exists()
        assert next(documents) == 2
        child.stop = "enough"
        assert list(documents) == ["enough"]


@pytest.mark.parametrize("send", ["say", "note"])
def test_whatever_it_sends_is_a_sign_of_life(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, send: str
) -> None:
    # Two seconds from one to the next, by a clock that nothing else moves.
    now_s = 0.0
    monkeypatch.setattr(processes, "time", SimpleNamespace(monotonic=lambda: now_s))
    monkeypatch.setattr(processes, "_POLL_S", 0.01)  # it is looked for before each of them
    with started(tmp_path, f"for n in range(5): time.sleep(0.1); {send}(n)") as child:
        said = []
        for document in child.documents(silence_s=3):
            said.append(document)
            now_s += 2
        assert (said, str(child.ending(patience_s=0))) == (
            [0, 1, 2, 3, 4],
            "ended with exit code 0",
        )


@pytest.mark.parametrize("note", ["b'no JSON'", "b'\\xff'"])
def test_a_note_that_is_no_document_ends_the_conversation(tmp_path: Path, note: str) -> None:
    source = f"say(1); note(2); send({note} + b'\\n'); note(3); {FOR_EVER}"
    said = "sent a message that cannot be read, killed"
    assert heard(started(tmp_path, source)) == ([1, 2], said)


def test_a_document_that_was_cut_is_not_told_but_the_cut_is(tmp_path: Path) -> None:
    documents, ending = heard(started(tmp_path, "say(1); send(b'[2, 3')"))
    assert (documents, ending) == ([1], "ended with exit code 0, in the middle of a message")


#: A daemon: started by a process that has ended, in a session of its own.
DAEMON = f"""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            open("daemon", "w").write(str(os.getpid()))
            {FOR_EVER}
        os._exit(0)
    os.wait()
    while not os.path.exists("daemon") or not open("daemon").read():
        time.sleep(0.01)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="daemons are found on Linux only")
@pytest.mark.parametrize("end", ["os.abort()", "say(1); " + FOR_EVER])
def test_a_daemon_ends_with_its_worker_and_other_children_of_ours_do_not(
    tmp_path: Path, end: str
) -> None:
    forever = [sys.executable, "-c", "import time; time.sleep(1000)"]
    with subprocess.Popen(forever, start_new_session=True) as before:
        child = started(tmp_path, DAEMON + f"    {end}\n")
        with subprocess.Popen(forever) as beside:
            try:
                with child:
                    next(child.documents(silence_s=PATIENCE_S), None)
                    child.ending(patience_s=0.1 if FOR_EVER in end else PATIENCE_S)
                daemon = int((tmp_path / "daemon").read_text())
                assert not Path(f"/proc/{daemon}").exists(), "neither it nor a zombie"
                assert (before.poll(), beside.poll()) == (None, None)
                assert child.survivors == []
            finally:
                before.kill()
                beside.kill()
    orphan = [sys.executable, "-c", "import os; print(os.getppid())"]
    shell = subprocess.run(
        ["sh", "-c", f"(sleep 0.2; exec {shlex.join(orphan)}) &"],
        stdout=subprocess.PIPE, text=True, check=True,
    )  # fmt: skip
    assert int(shell.stdout) != os.getpid(), "what others leave behind is not ours any more"


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
    monkeypatch.setattr(processes, "_GRACE_S", 0.2)
    # One that ends by the signal must have all the time it takes on a busy machine.
    monkeypatch.setattr(processes, "_LAST_GRACE_S", 0.2 if code == -9 else PATIENCE_S)
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


def test_what_was_printed_before_a_document_is_shown_before_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = """
        for n in range(3):
            os.write(1, b"out %d\\n" % n)  # in one piece, however Python buffers
            os.write(2, b"err %d\\n" % n)
            say(n)
    """
    with started(tmp_path, source, shown=True) as child:
        for n in child.documents(silence_s=PATIENCE_S):
            assert capsys.readouterr() == (f"out {n}\n", f"err {n}\n")
    lines = [f"{stream} {n}" for n in range(3) for stream in ("out", "err")]
    assert sorted((tmp_path / "worker.log").read_text().splitlines()) == sorted(lines)


CRASH = ["Fatal Python error: Segmentation fault", ""]
FRAMES = ["Current thread 0x2 (most recent call first):", *(f"  frame {n}" for n in range(50))]
AFTER = ["", "Extension modules: numpy"]


@pytest.mark.parametrize(
    ("log", "lines", "expected"),
    [
        ([*map(str, range(100)), "", " ", ""], 3, ["97", "98", "99"]),
        ([""], 20, []),
        (["\udcff\udcfe", ""], 20, ["\ufffd\ufffd"]),
        (["why", *CRASH, *FRAMES, *AFTER], 8, [CRASH[0], "", *FRAMES[:6]]),
        (["before", "last", *CRASH, *FRAMES[:3]], 6, ["last", *CRASH, *FRAMES[:3]]),
    ],
    ids=["last lines", "empty", "no text", "crash", "crash that fits"],
)  # fmt: skip
def test_the_tail_of_a_log(tmp_path: Path, log: list[str], lines: int, expected: list[str]) -> None:
    (tmp_path / "log").write_bytes("\n".join(log).encode(errors="surrogateescape"))
    assert tail(tmp_path / "log", lines=lines).splitlines() == expected
