"""Which tools there are, and what becomes of what an agent says."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from pytest_ttnn_perf.agents.mcp import TOOLS, why_not_accept
from pytest_ttnn_perf.cli.main import parse
from pytest_ttnn_perf.core.errors import UsageError
from tests.harness.golden import assert_golden
from tests.harness.project import run_command
from tests.mcp.wire import answers_to, call, request, text_of

if TYPE_CHECKING:
    from tests.harness.baselines import Desk

BY_NAME = {tool.name: tool for tool in TOOLS}
EIGHT = ["status", "doctor", "plan", "try", "explain", "journal", "compare", "accept"]
#: The most that can be said to each.
SAID: dict[str, dict[str, Any]] = {
    "status": {},
    "doctor": {},
    "plan": {"of": ["run.json", "test_a.py::test_x[1]"]},
    "try": {"message": "--base=HEAD~9", "tests": ["test_a.py::test_x[1]"]},
    "explain": {"what": "TTP203"},
    "journal": {},
    "compare": {"before": "a.csv", "after": "b.csv"},
    "accept": {"record": "run.json", "tests": ["-x", "a.py::b"], "reason": "--update new"},
}


def listed(forbidden: str | None = None) -> list[dict[str, Any]]:
    (answer,) = answers_to(json.dumps(request("tools/list")).encode(), forbidden)
    assert len(json.dumps(answer)) <= 8192
    found: list[dict[str, Any]] = answer["result"]["tools"]
    return found


@pytest.mark.usefixtures("desk")
def test_eight_tools_with_a_schema_each() -> None:
    tools = listed()

    assert [tool["name"] for tool in tools] == EIGHT == list(SAID)
    for tool in tools:
        jsonschema.Draft202012Validator.check_schema(tool["inputSchema"])
        jsonschema.validate(SAID[tool["name"]], tool["inputSchema"])
    assert_golden("mcp_tools", json.dumps(tools, indent=2) + "\n")


@pytest.mark.parametrize("name", EIGHT)
def test_a_command_understands_its_tool(name: str) -> None:
    options = parse(BY_NAME[name].command_line(SAID[name]))

    assert options.format == "json"
    if name == "accept":
        assert (options.words, options.ids) == (["run.json"], ["-x", "a.py::b"])
        assert options.reason == "--update new"
    if name == "try":
        assert (options.message, options.rest) == ("--base=HEAD~9", ["test_a.py::test_x[1]"])


@pytest.mark.parametrize(
    ("name", "said", "sentence"),
    [
        ("status", {"x": 1}, "status: expected no arguments, found ['x']"),
        ("status", [1], "status: expected arguments as an object"),
        ("compare", {"before": "a"}, "compare: expected before, after, found ['before']"),
        ("compare", {"before": 7, "after": "b"}, "before: Expected `str`, got `int`, found 7"),
        ("explain", {"what": "--help"}, "what: Expected `str` matching regex '^[^-@]', found"),
        ("explain", {"what": "x" * 1001}, "what: Expected `str` of length <= 1000, found"),
        ("explain", {"what": "a\0b"}, "what: expected text without NUL and half characters"),
        ("explain", {"what": "a\ud800"}, "what: expected text without NUL and half characters"),
        ("plan", {"of": ["a"] * 101}, "of: Expected `array` of length <= 100, found"),
        ("accept", {"record": "r", "tests": ["a"], "reason": ""}, "reason: Expected `str` of"),
        ("try", {"message": "m", "tests": ["@options.txt"]}, "tests: Expected `str` matching"),
        ("accept", {"record": "r", "tests": [], "reason": "r"}, "tests: Expected `array` of"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_words(name: str, said: Any, sentence: str) -> None:
    with pytest.raises(UsageError) as refused:
        BY_NAME[name].command_line(said)

    assert str(refused.value).startswith(sentence)


def test_an_agent_reads_what_was_wrong_with_its_words() -> None:
    (answer,) = answers_to(json.dumps(call("a", "compare", before="-x", after="b")).encode())

    assert answer["result"]["isError"]
    assert text_of(answer).startswith("before: Expected `str` matching regex")


@pytest.mark.parametrize(
    ("setting", "why"),
    [
        ("false", "agents_accept is false in the configuration"),
        ("'no'", "agents_accept: expected true or false, found 'no'"),
    ],
)
def test_a_project_can_forbid_agents_to_accept(desk: Desk, setting: str, why: str) -> None:
    """Even if the agent has edited the configuration since the server started."""
    file = desk.path / "ttnn_perf.toml"
    file.write_text(f"agents_accept = {setting}\n")
    forbidden = why_not_accept()
    file.write_text("agents_accept = true\n")

    assert [tool["name"] for tool in listed(forbidden)] == EIGHT[:-1]
    (answer,) = answers_to(json.dumps(call(1, "accept", **SAID["accept"])).encode(), forbidden)
    assert text_of(answer).startswith("accept is forbidden here: ")
    assert f"{why}; ask a person to run ttnn-perf baseline accept" in text_of(answer)


@pytest.mark.parametrize("name", ["explain", "compare", "plan"])
def test_of_a_file_of_another_kind_nothing_is_shown(desk: Desk, name: str) -> None:
    file = str(desk.path / "credentials")
    (desk.path / "credentials").write_text("password = hunter2\n")
    files: dict[str, dict[str, Any]] = {"explain": {"what": file}, "plan": {"of": [file]}}

    ran = run_command(*BY_NAME[name].command_line(files.get(name, {"before": file, "after": file})))

    assert ran.errors.startswith(f"ttnn-perf: {file}: its format is not known; known formats: ")
    assert "hunter2" not in ran.text + ran.errors
