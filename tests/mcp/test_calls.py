"""Calls of tools: their commands run one after another, tell how far they are, can be cancelled."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from pytest_ttnn_perf.agents import mcp as calls
from pytest_ttnn_perf.agents.mcp import Server
from tests.mcp import stand_in
from tests.mcp.wire import Wire, call, request, text_of, wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.harness.baselines import Desk


@pytest.fixture
def wire(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Wire]:
    """Return a wire to a server whose commands are stand-ins, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(calls, "_START", stand_in.START)
    with Wire() as wire:
        yield wire


def cancel(number: str | int) -> dict[str, Any]:
    params = {"requestId": number, "reason": "the user has seen enough"}
    return {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}


def progress(message: dict[str, Any]) -> tuple[object, int, str]:
    assert message["method"] == "notifications/progress"
    said = message["params"]
    return said["progressToken"], said["progress"], said["message"]


@pytest.mark.parametrize(
    ("what", "code", "printed"),
    [
        ("failed", 1, {"failed": True}),
        ("nan", 0, {"change": None, "name": "half ?"}),  # JSON has no word for these
    ],
)
def test_an_answer_has_the_command_its_exit_code_and_what_it_printed(
    wire: Wire, what: str, code: int, printed: dict[str, Any]
) -> None:
    answer = wire.ask(call(1, "explain", what=what))

    command = f"ttnn-perf explain --format json {what}"
    assert json.loads(text_of(answer)) == {
        "command": command, "exit_code": code, "answer": printed
    }  # fmt: skip
    assert answer["result"]["isError"] is False


@pytest.mark.parametrize(
    ("what", "text"),
    [
        ("wrong", "ttnn-perf: no rule is called 'wrong'"),
        ("defect", "ttnn-perf: internal error\n  the command: ttnn-perf explain"),
        ("killed", "ttnn-perf explain --format json killed ended with code -9, and said nothing"),
        ("prose", "ttnn-perf explain --format json prose ended with code 0, and said nothing"),
    ],
)
def test_a_command_that_fails_is_an_answer_that_an_agent_reads(
    wire: Wire, what: str, text: str
) -> None:
    answer = wire.ask(call(1, "explain", what=what))

    assert answer["result"]["isError"]
    assert text_of(answer) == text


def test_lines_of_a_command_are_progress_if_that_is_asked_for(wire: Wire) -> None:
    wire.send(call(1, "explain", "token", what="rounds"), call(2, "explain", what="rounds"))
    lines = [wire.receive() for _ in range(4)]

    assert [progress(each) for each in lines[:2]] == [
        ("token", 1, "round 1"),
        ("token", 2, "round 2"),
    ]
    assert [each["id"] for each in lines[2:]] == [1, 2]


def test_a_cancelled_call_ends_as_with_ctrl_c_and_loses_nothing(wire: Wire, tmp_path: Path) -> None:
    wire.send(call("a", "explain", 7, what="long"))
    assert progress(wire.receive()) == (7, 1, "round 1")
    wire.send(cancel("a"))

    # It gets no answer, and what came after it is answered.
    assert wire.ask(call("b", "explain", what="x"))["id"] == "b"
    assert (tmp_path / "kept").read_text() == "round 1"


def test_calls_wait_for_each_other_but_nothing_else_does(wire: Wire, tmp_path: Path) -> None:
    wire.send(call(1, "explain", what="long"))
    wait_for(tmp_path / "running")
    wire.send(call(2, "explain", "t", what="never"), call(3, "explain", what="x"))

    assert wire.ask(request("ping", 4))["id"] == 4
    refused = wire.ask(call(3, "explain", what="y"))
    assert refused["error"]["message"] == "expected an id that is not in use, found 3"
    wire.send(cancel(2), cancel(1))
    assert wire.receive()["id"] == 3  # one that was cancelled while it waited never runs


def test_a_client_that_goes_ends_what_it_started(wire: Wire, tmp_path: Path) -> None:
    wire.send(call(1, "explain", what="long"), call(2, "explain", what="x"))
    wait_for(tmp_path / "running")
    wire.hang_up()

    assert (tmp_path / "kept").exists()


def test_a_defect_of_the_server_is_said_and_the_next_call_is_answered(
    wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(calls, "command_line", None)
        assert "internal error, a defect of ours" in text_of(wire.ask(call(1, "doctor")))
    with monkeypatch.context() as broken:
        broken.setattr(Server, "_call", None)
        refused = wire.ask(call(2, "doctor"))
        assert (refused["error"]["code"], refused["id"]) == (-32603, 2)
    assert wire.ask(call(3, "doctor"))["id"] == 3


def test_commands_themselves(desk: Desk) -> None:
    before = desk.record("before.json", tests={"test_a.py::test_x": [2.0, 2.0]})
    (desk.path / ".ttnn_perf" / "runs").mkdir(parents=True)
    desk.record(".ttnn_perf/runs/1.json", tests={"test_a.py::test_x": [3.0, 3.0]})
    (desk.path / "json.py").write_text("raise SystemExit('imported from where a client works')")
    with Wire() as wire:

        def ask(name: str, **said: Any) -> dict[str, Any]:
            answer = wire.ask(call(1, name, **said))["result"]
            assert not answer["isError"], answer
            answered: dict[str, Any] = json.loads(answer["content"][0]["text"])
            return answered

        accepted = ask(
            "accept", record=before.name, tests=["test_a.py::test_x"], reason="where we begin"
        )
        status = ask("status")
        refused = wire.ask(call(1, "compare", before="nowhere.json", after="nowhere.json"))

    baseline = desk.find("test_a.py::test_x")
    assert baseline is not None
    assert baseline.accepted.reason == "where we begin"
    assert accepted["exit_code"] == 0
    assert status["answer"]["failed"][0]["why"].startswith("REGRESSED: latency 50.0 % slower")
    assert status["answer"]["next"] == ["ttnn-perf explain test_a.py::test_x"]
    assert text_of(refused).startswith("ttnn-perf: nowhere.json: ")
