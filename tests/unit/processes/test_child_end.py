"""Nobody outlives the run: a worker's end when it is not waited for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf.processes import worker as child_module
from tests.faults.workers import assert_gone, is_running
from tests.unit.processes.script import FOR_EVER, started

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_ttnn_perf.processes.worker import Child

PATIENCE_S = 60.0


class Stop(Exception):  # noqa: N818 (not an error)
    """Ends a run in the middle, as Ctrl-C does."""


def interrupted(child: Child, raises: type[BaseException] = Stop) -> list[object]:
    """Hear a worker until it says "now", then stop in the middle; return what it said."""
    said: list[object] = []

    def receive() -> None:
        with child:
            for document in child.documents(silence_s=PATIENCE_S):
                said.append(document)
                if document == "now":
                    raise Stop

    with pytest.raises(raises):
        receive()
    return said


def test_a_worker_that_is_interrupted_may_take_its_fixtures_down(tmp_path: Path) -> None:
    source = f"""
        try:
            send(b'"now"\\n')
            {FOR_EVER}
        except KeyboardInterrupt:
            open("down", "w").close()
            try:
                say("down")  # to nobody, who is not waited for
            except (OSError, ValueError):
                open("gone", "w").close()
    """
    child = started(tmp_path, source)
    assert interrupted(child) == ["now"]
    assert (tmp_path / "down").exists()
    assert (tmp_path / "gone").exists()
    assert child.process.returncode == 0


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
    interrupted(child)
    assert child.process.returncode == code


def test_a_second_interrupt_gives_no_grace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def again(_: Child, __: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(child_module.Child, "_wait", again)
    child = started(tmp_path, f"signal.signal(2, signal.SIG_IGN); send(b'\"now\"\\n'); {FOR_EVER}")
    assert interrupted(child, raises=KeyboardInterrupt) == ["now"]
    assert child.process.returncode == -9


@pytest.mark.parametrize("end", ["pass", FOR_EVER], ids=["by itself", "killed"])
def test_what_a_worker_started_ends_with_it(tmp_path: Path, end: str) -> None:
    source = f"""
        import subprocess
        beside = subprocess.Popen([sys.executable, "-c", "import time; {FOR_EVER}"])
        say(beside.pid)
        {end}
    """
    with started(tmp_path, source) as child:
        documents = child.documents(silence_s=PATIENCE_S)
        pid = next(documents)
        assert isinstance(pid, int)
        assert is_running(pid)
        if end != FOR_EVER:
            assert list(documents) == []
    assert_gone([pid, child.process.pid])
