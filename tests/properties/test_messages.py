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
from pytest_ttnn_perf.plugin.wire import (
    OBSERVATION,
    Collected,
    Ended,
    Finished,
    Message,
    Reported,
    Started,
    StopCause,
    Stopped,
    Warned,
    message_of,
)
from tests.properties.strategies import MANY, SOME

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

#: Half a surrogate pair too: it may stand in the id of a parametrised test.
TEXTS = st.text(st.characters(exclude_categories=()), max_size=8)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)
IDS = st.lists(TEXTS, max_size=3)
#: What fits a C integer, as every line and every exit code does.
NUMBERS = st.integers(-(2**31) + 1, 2**31 - 1)
LOCATIONS = st.tuples(TEXTS, st.none() | NUMBERS, TEXTS).map(list)
WORDS = TEXTS.filter(lambda text: "\0" not in text)
REPORTS = st.builds(
    lambda more, known: {**more, **known},
    st.dictionaries(TEXTS, JSON, max_size=3),
    st.fixed_dictionaries(
        {"nodeid": TEXTS, "location": LOCATIONS},
        optional={"when": TEXTS, "outcome": TEXTS, OBSERVATION: JSON},
    ),
)
MESSAGES: SearchStrategy[Message] = st.one_of(
    st.builds(Collected, IDS, st.none() | IDS, IDS, IDS, st.none() | TEXTS, st.none() | NUMBERS),
    st.builds(Started, TEXTS, LOCATIONS),
    st.builds(Reported, REPORTS),
    st.builds(Warned, TEXTS, WORDS, WORDS, NUMBERS, TEXTS, TEXTS, st.none() | LOCATIONS),
    st.builds(Finished, TEXTS, LOCATIONS, st.booleans()),
    st.builds(Stopped, st.sampled_from(StopCause), TEXTS, st.none() | NUMBERS),
    st.builds(Ended, NUMBERS),
)
KINDS = [kind for kind in Message.__subclasses__() if not kind.__subclasses__()]


def sent(document: object) -> Any:
    """Return what arrives of a document at the other end of a channel."""
    return json.loads(json.dumps(document))


@MANY
@given(MESSAGES)
@example(Started("a.py::b[\ud800]", ["a.py", None, "b"]))
def test_a_message_survives_its_way(message: Message) -> None:
    assert message_of(sent(message.document())) == message


@SOME
@given(MESSAGES, st.data())
def test_a_message_that_lacks_a_field_is_refused(message: Message, data: st.DataObject) -> None:
    document = message.document()
    del document[data.draw(st.sampled_from(sorted(document)))]
    with pytest.raises(DecodeError, match=r"^the document: expected a message of a worker, found"):
        message_of(sent(document))


@SOME
@given(MESSAGES, st.data())
def test_a_message_with_a_value_of_another_type_is_refused(
    message: Message, data: st.DataObject
) -> None:
    document = message.document()
    name = data.draw(st.sampled_from(sorted(document)))
    document[name] = "no report" if name == "report" else {"no": "field holds this"}
    with pytest.raises(DecodeError):
        message_of(sent(document))


@MANY
@given(MESSAGES, st.data())
def test_a_message_with_another_value_is_refused_or_can_be_read(
    message: Message, data: st.DataObject
) -> None:
    document = message.document()
    document[data.draw(st.sampled_from(sorted(document)))] = data.draw(JSON)
    read_or_refused(sent(document))


@MANY
@given(
    JSON
    | st.dictionaries(
        st.sampled_from(["kind", *{name for kind in KINDS for name in kind.__struct_fields__}]),
        JSON,
    )
)
@example({"kind": "Message"})
@example({"kind": ["Started"]})
@example({"kind": "Reported", "report": {}})
@example({"kind": "Reported", "report": {"nodeid": 5}})
@example({"kind": "Reported", "report": ["nodeid"]})
@example({"kind": "Collected", "tests": None, "measured": None, "deselected": [], "lines": []})
@example("kind")
def test_any_document_is_a_message_or_refused_by_name(document: object) -> None:
    read_or_refused(document)


def read_or_refused(document: object) -> None:
    """Read a document; whoever gets a message can ask it for all that its kind has."""
    try:
        message = message_of(document)
    except DecodeError:
        return
    assert message.document().items() >= {"kind": type(message).__name__}.items()
    if isinstance(message, Reported):
        assert isinstance(message.test, str)
        assert isinstance(message.phase, str)
        assert message.observed == message.report.get(OBSERVATION)


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


@SOME
@given(ASSIGNMENTS, st.data())
def test_an_assignment_with_another_value_is_refused_or_an_assignment(
    assignment: Assignment, data: st.DataObject
) -> None:
    document = encode(assignment)
    document[data.draw(st.sampled_from(sorted(document)))] = data.draw(JSON)
    try:
        read = decode(Assignment, sent(document))
    except DecodeError:
        return
    assert decode(Assignment, encode(read)) == read
