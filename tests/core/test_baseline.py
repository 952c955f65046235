"""The text of a baseline file: as it is written, as it was before, and what is refused."""

from __future__ import annotations

import json

import pytest

from pytest_ttnn_perf.core.baseline import MetricBaseline, Session, decode_file, encode_text
from pytest_ttnn_perf.core.codec import decode
from pytest_ttnn_perf.core.errors import DecodeError
from pytest_ttnn_perf.core.observation import MetricObservation

_BEFORE = """{
  "format": %s,
  "hardware": {"arch": "wormhole_b0", "board": "n150", "mesh": "1x1"},
  "tests": {
    "test_a": {
      "accepted": {"at": "2026-11-15T10:00:00Z", "commit": null, "reason": "first", "ttnn": null},
      "configuration": {"batch": 8},
      "metrics": {
        "latency": {
          "better": "lower", "kind": "time", "sessions": [
"""
_AFTER = """          ], "since": 1, "source": "wall", "unit": "ms"
        }
      }
    }
  }
}
"""
OLD_SESSIONS = """            [10, 0.1, 5],
            [20.5, 0, 5]
"""
NEW_SESSIONS = """            [10, 0.1, 5],
            [20.5, 0, 5],
            [20.25, 0.5, 7, "20261116T010000Z-ab12cd"],
            [20.75, 0.5, 7, "20261116T010000Z-ab12cd"]
"""


def text(format_: int, sessions: str) -> str:
    """Return a file of a format, with these lines of sessions."""
    return _BEFORE % format_ + sessions + _AFTER


def latency(file_text: str) -> MetricBaseline:
    return decode_file(json.loads(file_text)).tests["test_a"].metrics["latency"]


def test_a_file_of_format_1_is_read_and_written_as_format_2() -> None:
    old = decode_file(json.loads(text(1, OLD_SESSIONS)))
    assert encode_text(old) == text(2, OLD_SESSIONS)
    sessions = latency(text(1, OLD_SESSIONS)).sessions
    assert sessions == (Session(10, 0.1, 5, ""), Session(20.5, 0, 5, ""))


def test_sessions_of_known_runs_stand_beside_those_of_older_files() -> None:
    read = decode_file(json.loads(text(2, NEW_SESSIONS)))
    assert encode_text(read) == text(2, NEW_SESSIONS)
    baseline = latency(text(2, NEW_SESSIONS))
    assert [session.run[-6:] for session in baseline.current] == ["", "ab12cd", "ab12cd"]
    # One before the accept, one since that is of no known run, and the one with a name.
    assert baseline.runs == 3


@pytest.mark.parametrize(
    ("session", "where", "expected"),
    [
        ("[1, 0, 5, 7]", "[0][3]", "a string"),
        ("[1, 0, 5, null]", "[0][3]", "a string"),
        ('[1, 0, 5, "a", "b"]', "[0]", "a session: [median, MAD, n, run]"),
        ("[1, 0]", "[0]", "a session: [median, MAD, n, run]"),
        ('[0, 0, 5, "a"]', "[0][0]", "a time above 0"),
    ],
)
def test_what_is_no_session_is_told_by_its_place(session: str, where: str, expected: str) -> None:
    with pytest.raises(DecodeError) as caught:
        latency(text(2, f"            {session}, [1, 0, 5]\n"))
    assert where in str(caught.value)
    assert expected in str(caught.value)


@pytest.mark.parametrize("move", [-1, -1.5, "fast", True])
def test_what_a_machine_cannot_have_done_is_refused(move: object) -> None:
    document = {"unit": "ms", "samples": [1], "confirmations": [[1]], "machine": [None, move]}
    with pytest.raises(DecodeError, match="machine"):
        decode(MetricObservation, document, key="t")
    document["machine"] = [None, 0.5]
    assert decode(MetricObservation, document, key="t").machine == (None, 0.5)
