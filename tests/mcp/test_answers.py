"""No answer is longer than 8 kB; one that was cut says what is missing, and nothing else is."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pytest_ttnn_perf.agents.mcp import MOST_BYTES, Request, encoded, fitted
from tests.mcp.stand_in import LARGE

NAMES = st.text(max_size=12)
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
)
#: Documents of a few bytes and of many: what is repeated need not be drawn.
LONG = st.builds(
    lambda text, times: text * times, st.text(min_size=1, max_size=9), st.integers(1, 3000)
)
DOCUMENTS = st.recursive(
    LEAVES | LONG,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(NAMES, inner, max_size=4)
        | st.builds(lambda item, times: [item] * times, inner, st.integers(0, 60))
        | st.builds(
            lambda item, times: {f"{n}": item for n in range(times)}, inner, st.integers(0, 60)
        )
    ),
    max_leaves=4,
)
HEAD = {"command": "ttnn-perf show run.json --format json", "exit_code": 0}


def answered(document: object, number: str | int = 1) -> dict[str, Any]:
    message = fitted(Request(number, "tools/call", {}, stateless=True).answer, HEAD, document)
    assert len(encoded(message)) <= MOST_BYTES
    result: dict[str, Any] = json.loads(encoded(message))["result"]
    return result


def told(result: dict[str, Any]) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(result["content"][0]["text"])
    return document


@given(document=DOCUMENTS, number=st.integers() | st.text(max_size=12))
def test_an_answer_fits_and_says_whether_it_is_whole(document: Any, number: str | int) -> None:
    result = answered(document, number)
    text = told(result)

    assert text.items() >= HEAD.items()
    if "cut" not in text:  # comparing is for those that are whole, and so are small
        assert text["answer"] == document
    else:
        assert text["cut"][-1] == "the command prints all of it"
    assert result.get("structuredContent", text) == text


def test_a_long_answer_keeps_its_fields_and_names_its_lists() -> None:
    text = told(answered({**LARGE, "causes": ["x" * 900] * 3}))

    assert text["answer"]["verdict"] == "KEEP"
    assert len(text["answer"]["ops"]) == 100
    assert text["cut"] == ["ops: 100 of 5000", "the command prints all of it"]


def test_an_answer_that_fits_twice_is_an_object_too() -> None:
    result = answered({"verdict": "KEEP"})

    assert result["structuredContent"] == {**HEAD, "answer": {"verdict": "KEEP"}}
    assert "structuredContent" not in answered({"text": "x" * 4500})
