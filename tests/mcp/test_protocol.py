"""Whatever a client sends is answered as the protocol says, or not at all."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ttnn_perf.agents.mcp import HANDSHAKE
from tests.mcp.wire import answers_to, call, request

VERSION = "io.modelcontextprotocol/protocolVersion"
PING = json.dumps(request("ping", "last")).encode()
PONG = {"jsonrpc": "2.0", "id": "last", "result": {}}


def line(message: object) -> bytes:
    return json.dumps(message).encode() + b"\n"


def stateless(method: str, version: object = "2026-07-28", **params: Any) -> dict[str, Any]:
    return request(method, **params, _meta={VERSION: version})


@pytest.mark.parametrize("version", [*HANDSHAKE, "2099-01-01", ["2025-06-18"]])
def test_a_handshake_has_the_revision_that_is_asked_for_or_the_newest(version: Any) -> None:
    (answer,) = answers_to(line(request("initialize", protocolVersion=version)))

    known = version if version in HANDSHAKE else HANDSHAKE[0]
    assert answer["result"]["protocolVersion"] == known
    assert answer["result"]["capabilities"] == {"tools": {}}
    assert answer["result"]["serverInfo"]["name"] == "ttnn-perf"
    assert "resultType" not in answer["result"]


def test_without_a_handshake_each_answer_says_that_it_is_complete() -> None:
    said = [line(stateless(method)) for method in ("server/discover", "tools/list", "ping")]
    discovered, listed, _ = [answer["result"] for answer in answers_to(b"".join(said))]

    assert discovered["supportedVersions"] == ["2026-07-28"]
    assert discovered["resultType"] == listed["resultType"] == "complete"
    assert discovered["ttlMs"] == listed["ttlMs"] == 0


def test_another_revision_without_a_handshake_is_refused_with_those_that_are_known() -> None:
    (answer,) = answers_to(line(stateless("tools/list", "2031-01-01")))

    assert answer["error"]["code"] == -32022
    data = {"supported": ["2026-07-28", *HANDSHAKE], "requested": "'2031-01-01'"}
    assert answer["error"]["data"] == data
    assert "found '2031-01-01'" in answer["error"]["message"]


@pytest.mark.parametrize(
    ("said", "code", "number", "part"),
    [
        (b"garbage", -32700, None, "expected JSON on one line: Expecting value"),
        (b"\xff\xfe\x00", -32700, None, "expected JSON"),
        (b"[" * 100_000, -32700, None, "maximum recursion depth"),
        (line([request("ping")]), -32600, None, "got `array`"),
        (b"7", -32600, None, "Expected `object`, got `int`"),
        (b'{"id": 1, "method": "ping"}', -32600, 1, "`jsonrpc`"),
        (b'{"jsonrpc": "2.0", "id": 1}', -32600, 1, "`method`"),
        (b'{"jsonrpc": "2.0", "id": 1.5, "method": "ping"}', -32600, None, "`$.id`"),
        (line(request("ping", "x" * 9000)), -32600, None, "length <= 200"),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": [1]}', -32600, 1, "`$.params`"),
        (line(request("resources/list")), -32601, 1, "no method 'resources/list'"),
        (line(call(1, "rm")), -32602, 1, "a tool of status, doctor, plan, try, explain, journal"),
    ],
)
def test_what_cannot_be_answered_is_an_error_and_the_next_line_is_read(
    said: bytes, code: int, number: object, part: str
) -> None:
    refused, pong = answers_to(said.rstrip(b"\n") + b"\n" + PING)

    assert (refused["error"]["code"], refused["id"]) == (code, number)
    assert part in refused["error"]["message"]
    assert len(json.dumps(refused)) < 2500
    assert pong == PONG


@pytest.mark.parametrize(
    "message",
    [
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "method": "notifications/never/heard/of", "params": [1]},
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 99}},
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": {}}},
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": 7},
        {"jsonrpc": "2.0", "id": 4, "result": {}},
    ],
)
def test_what_needs_no_answer_gets_none(message: dict[str, Any]) -> None:
    assert answers_to(line(message) + b"\n  \n" + PING) == [PONG]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)


METHODS = st.sampled_from(["initialize", "tools/list", "ping", "server/discover"])


@given(st.lists(st.binary(max_size=60).filter(lambda part: b"\n" not in part)), METHODS, JSON)
def test_whatever_comes_before_a_message_it_is_answered_once(
    lines: list[bytes], method: str, params: object
) -> None:
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    *others, answer = answers_to(b"".join(part + b"\n" for part in lines) + line(message))

    assert all("error" in other for other in others)
    assert answer["id"] == 1
    assert ("result" in answer) != ("error" in answer)
