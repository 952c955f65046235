"""A line that is rewritten on a terminal, and plain lines in a log."""

from __future__ import annotations

import io

import pytest

from pytest_ttnn_perf.report.tables import columns_of
from pytest_ttnn_perf.report.terminal import LiveLine


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")


def test_a_line_is_rewritten_and_nothing_of_it_stays() -> None:
    screen = Screen()
    with LiveLine(screen) as line:
        line.progress("1 of 2 tests", milestone=False)
        line.progress("2 of 2 tests", milestone=True)
    assert screen.getvalue() == "\r\x1b[2K1 of 2 tests\r\x1b[2K2 of 2 tests\r\x1b[2K"


def test_a_long_line_stays_one_line() -> None:
    screen = Screen()
    LiveLine(screen).show("漢字\n\x1b[31m" * 40)
    shown = screen.getvalue().removeprefix("\r\x1b[2K")
    assert columns_of(shown) < 40
    assert "\n" not in shown
    assert "\x1b" not in shown


def test_a_log_has_a_line_per_milestone() -> None:
    log = io.StringIO()
    with LiveLine(log) as line:
        line.progress("1 of 2 tests", milestone=False)
        line.progress("2 of 2 tests", milestone=True)
    assert log.getvalue() == "2 of 2 tests\n"
