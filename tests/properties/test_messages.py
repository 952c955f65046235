"""What orchestrator and worker tell each other survives JSON; what is no message is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pytest_ttnn_perf.core.assignment import Assignment, PassKind
from pytest_ttnn_perf.core.codec import decode, encode
from pytest_ttnn_perf.core.errors import DecodeError
from pytest_ttnn_perf.plugin.wire import OBSERVATION, message_of
from tests.properties.strategies import MANY, SOME

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn, SearchStrategy

#: Half a surrogate pair too: it may stand in the id of a parametrised test.
TEXTS = st.text(st.characters(exclude_categories=()), max_size=8)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)
IDS = st.lists(TEXTS, max_size=3)
NUMBERS = st.integers()
LOCATIONS = st.tuples(TEXTS, st.none() | NUMBERS, TEXTS).map(list)
REPORTS = st.builds(
    lambda more, known: {**more, **known},
    st.dictionaries(TEXTS, JSON, max_size=3),
    st.fixed_dictionaries(
        {"nodeid": TEXTS, "location": LOCATIONS},
        optional={"when": TEXTS, "outcome": TEXTS, OBSERVATION: JSON},
    ),
)
TEST = {"test": TEXTS, "location": LOCATIONS}
UNKNOWN = st.none() | TEXTS
CODE = st.none() | NUMBERS
KINDS: dict[str, dict[str, SearchStrategy[Any]]] = {
    "collected": {
        "tests": IDS, "measured": st.none() | IDS, "deselected": IDS,
        "confirm": CODE, "root": UNKNOWN,
        "identities": st.dictionaries(TEXTS, TEXTS, max_size=3),
    },
    "started": TEST,
    "reported": {"report": REPORTS},
    "warned": {
        **TEST, "location": st.none() | LOCATIONS, "text": TEXTS, "category": TEXTS,
        "filename": TEXTS, "line": NUMBERS, "when": TEXTS,
    },
    "opened": {},
    "finished": {**TEST, "apart": st.booleans()},
    "stopped": {
        "cause": st.sampled_from(["refused", "broke", "ended"]), "text": TEXTS, "code": CODE,
    },
    "strayed": {"modules": st.lists(JSON, max_size=3)},
    "ended": {"status": NUMBERS},
}  # fmt: skip
DOCUMENTS: SearchStrategy[dict[str, Any]] = st.one_of(
    [st.fixed_dictionaries({"kind": st.just(kind), **data}) for kind, data in KINDS.items()]
)


def sent(document: object) -> Any:
    """Return what arrives of a document at the other end of a channel."""
    return json.loads(json.dumps(document))


@MANY
@given(DOCUMENTS)
@example({"kind": "started", "test": "a.py::b[\ud800]", "location": ["a.py", None, "b"]})
def test_a_message_survives_its_way(document: dict[str, Any]) -> None:
    read = message_of(sent(document))
    assert sent({"kind": read.kind, **read.data}) == document


@st.composite
def nearly_right(draw: DrawFn) -> object:
    """Draw a message in which one value is another one."""
    document = draw(DOCUMENTS)
    document[draw(st.sampled_from(sorted(document)))] = draw(JSON)
    return document


@MANY
@given(JSON | nearly_right())
@example({"kind": "Message"})
@example({"kind": ["started"]})
@example({"kind": "reported", "report": {}})
@example({"kind": "reported", "report": {"nodeid": 5}})
@example({"kind": "reported", "report": ["nodeid"]})
def test_any_document_is_a_message_or_refused_by_name(document: object) -> None:
    """Whoever gets a message can ask it for all that its kind has."""
    try:
        message = message_of(sent(document))
    except DecodeError:
        return
    assert message.data.keys() == KINDS[message.kind].keys()
    if message.kind == "reported":
        assert isinstance(message.test, str)
        assert message.observed == message["report"].get(OBSERVATION)


def test_a_damaged_stream_is_not_quoted_at_length() -> None:
    with pytest.raises(DecodeError) as refused:
        message_of(["x" * 10_000])
    assert len(str(refused.value)) < 200


ASSIGNMENTS = st.builds(
    Assignment,
    kind=st.sampled_from(PassKind),
    folder=TEXTS.map(Path),
    tests=st.none() | IDS.map(tuple),
    first=st.booleans(),
    cwd_on_path=st.booleans(),
)


@SOME
@given(ASSIGNMENTS)
def test_an_assignment_survives_its_file(assignment: Assignment) -> None:
    assert decode(Assignment, sent(encode(assignment))) == assignment
