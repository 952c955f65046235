"""Any input at all is read or refused by name; nothing else may come out of a reader."""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pytest_ttnn_perf.analysis.readers.detect import read_run
from pytest_ttnn_perf.core.baseline import decode_file, encode_text
from pytest_ttnn_perf.core.errors import DecodeError, InputError
from pytest_ttnn_perf.core.files import line_of, read_json
from pytest_ttnn_perf.core.observation import decode_run, encode_run
from tests.properties.records import BASELINE_FILES, runs
from tests.properties.strategies import SOME

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from hypothesis.strategies import DrawFn

Step = str | int
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
JSON = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=12,
)
DEEP = "[" * 100_000
#: More digits than Python turns into a number.
DIGITS = '{"format": ' + "1" * 5000 + "}"
JOURNAL = '{"format": 1, "journal": true}\n'


def paths(document: object, path: tuple[Step, ...] = ()) -> Iterator[tuple[Step, ...]]:
    yield path
    if isinstance(document, dict):
        for name, member in document.items():
            yield from paths(member, (*path, name))
    elif isinstance(document, list):
        for index, member in enumerate(document):
            yield from paths(member, (*path, index))


def replaced(document: Any, path: tuple[Step, ...], value: object) -> Any:
    if not path:
        return value
    changed = copy.deepcopy(document)
    container = changed
    for step in path[:-1]:
        container = container[step]
    container[path[-1]] = value
    return changed


@st.composite
def _nearly_right(draw: DrawFn, documents: st.SearchStrategy[Any]) -> object:
    """Draw a right document in which one value is another one."""
    document = draw(documents)
    return replaced(document, draw(st.sampled_from(list(paths(document)))), draw(JSON))


RECORDS = runs().map(encode_run)
BASELINES = BASELINE_FILES.map(lambda file: json.loads(encode_text(file)))


#: Not JSON, though Python's parser takes it; and it differs from itself.
NAN_SETTING = {"configuration": {"x": float("nan")}, "metrics": {}, "accepted": {"at": "now"}}
NAN_DOCUMENT = {
    "format": 1,
    "hardware": {"arch": "host", "board": "x"},
    "tests": {"t": NAN_SETTING},
}


@SOME
@given(JSON | _nearly_right(RECORDS))
@example(NAN_DOCUMENT)
def test_a_record_is_refused_or_can_be_written_again(document: object) -> None:
    try:
        run = decode_run(document)
    except DecodeError:
        return
    assert decode_run(json.loads(json.dumps(encode_run(run), allow_nan=False))) == run


@SOME
@given(JSON | _nearly_right(BASELINES))
@example(NAN_DOCUMENT)
def test_a_baseline_is_refused_or_can_be_written_again(document: object) -> None:
    try:
        file = decode_file(document)
    except DecodeError:
        return
    assert decode_file(json.loads(encode_text(file), parse_constant=_not_json)) == file


def _not_json(constant: str) -> object:
    message = f"{constant} is not JSON"
    raise AssertionError(message)


def _read_baseline(file: Path) -> object:
    return read_json(file, decode_file)


@pytest.mark.parametrize("read", [read_run, _read_baseline], ids=["record", "baseline"])
@SOME
@given(
    content=st.binary(max_size=40)
    | st.text(max_size=40).map(str.encode)
    | JSON.map(lambda document: json.dumps(document).encode())
    | st.text(max_size=20).map(lambda text: (JOURNAL + text).encode())
    | st.text(max_size=20).map(lambda text: ("{" + text + JOURNAL[1:]).encode())
)
@example(content=DEEP.encode())
@example(content=DIGITS.encode())
@example(content=(JOURNAL + DEEP + "\n{}\n").encode())
@example(content=(JOURNAL + DIGITS + "\n{}\n").encode())
@example(content=b"\xef\xbb\xbf{}")
def test_any_bytes_are_read_or_refused_in_one_line(
    tmp_path_factory: pytest.TempPathFactory, read: Callable[[Path], object], content: bytes
) -> None:
    file = tmp_path_factory.getbasetemp() / "hostile.json"
    file.write_bytes(content)
    try:
        read(file)
    except InputError as error:
        message = str(error)
        assert message.startswith(str(file))
        assert len(message.splitlines()) == 1


@SOME
@given(JSON, st.data(), st.sampled_from([None, 0, 2]), st.booleans())
def test_a_value_is_found_on_the_line_it_begins_on(
    document: object, data: st.DataObject, indent: int | None, ascii_only: bool
) -> None:
    path = data.draw(st.sampled_from(list(paths(document))))
    mark = "the one value that stands here and nowhere else"
    marked = json.dumps(replaced(document, path, mark), indent=indent, ensure_ascii=ascii_only)
    line = next(n for n, text in enumerate(marked.split("\n"), start=1) if mark in text)
    text = json.dumps(document, indent=indent, ensure_ascii=ascii_only)
    assert line_of(text, path) == line
    # What is missing is reported where it should have been.
    assert line_of(text, (*path, mark)) == line
