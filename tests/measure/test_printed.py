"""What a test prints is kept beside where it goes, and nothing else changes."""

from __future__ import annotations

import io
import sys
from typing import TYPE_CHECKING

from pytest_ttnn_perf.measure import timing as printed
from pytest_ttnn_perf.measure.timing import Tee, kept_output

if TYPE_CHECKING:
    import pytest


def test_what_is_printed_is_kept_and_goes_where_it_would(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stdout", stream)
    with kept_output() as tee:
        print("first", "second", sep=", ")  # noqa: T201
        assert sys.stdout.write("µs\n") == 3
        assert tee.kept == "first, second\nµs\n"
    print("afterwards")  # noqa: T201
    assert stream.getvalue() == "first, second\nµs\nafterwards\n"
    assert tee.kept == "first, second\nµs\n"
    assert sys.stdout is stream


def test_what_is_printed_without_end_is_kept_from_its_beginning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(printed, "_MOST_KEPT", 8)
    stream = io.StringIO()
    tee = Tee(stream)
    for text in ("abcd", "efg", "hi", "jk", "l"):
        tee.write(text)
    assert tee.kept == "abcdefghi"  # the text that fills it up is kept whole
    assert stream.getvalue() == "abcdefghijkl"
