"""No answer is longer than 8 kB; one that was cut says what is missing, and nothing else is."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pytest_ttnn_perf.agents.mcp import MOST_BYTES, STATELESS, Request, encoded, fitted
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
    params = {"_meta": {"io.modelcontextprotocol/protocolVersion": STATELESS}}
    request = Request("2.0", "tools/call", number, params)
    message = fitted(request.answer, HEAD, document)
    assert len(encoded(message)) <= MOST_BYTES
    result: dict[str, Any] = json.loads(encoded(message))["result"]
    told: dict[str, Any] = json.loads(result["content"][0]["text"])
    return told


@given(document=DOCUMENTS, number=st.integers() | st.text(max_size=12))
def test_an_answer_fits_and_says_whether_it_is_whole(document: Any, number: str | int) -> None:
    text = answered(document, number)

    assert text.items() >= HEAD.items()
    if "cut" not in text:  # comparing is for those that are whole, and so are small
        assert text["answer"] == document
    else:
        assert text["cut"] == "this is its beginning: the command prints all of it"


def test_of_a_long_answer_the_beginning_is_there() -> None:
    text = answered(LARGE)

    assert text["answer"].startswith('{"verdict":"KEEP","ops":[{"op":"Matmul_0","ns":0},')
    assert len(text["answer"]) > 4000
