"""How a worker ended, in words."""

from __future__ import annotations

import pytest

from pytest_ttnn_perf.processes.worker import Ending


@pytest.mark.parametrize(
    ("ending", "text"),
    [
        (Ending(0), "ended with exit code 0"),
        (Ending(3), "ended with exit code 3"),
        (Ending(-9), "was killed by SIGKILL"),
        (Ending(-11), "was killed by SIGSEGV"),
        # A real-time signal has a number and no name.
        (Ending(-40), "was killed by signal 40"),
        (Ending(0, cut=True), "ended with exit code 0, in the middle of a message"),
        (Ending(-9, cut=True), "was killed by SIGKILL, in the middle of a message"),
        # What we did ourselves is not told as what happened to it.
        (Ending(-9, silent_s=2), "hung: no sign of life for 2 s, killed"),
        (Ending(-9, silent_s=0.5, cut=True), "hung: no sign of life for 0.5 s, killed"),
        (Ending(-9, damaged=True), "sent a message that cannot be read, killed"),
        (Ending(-9, damaged=True, cut=True), "sent a message that cannot be read, killed"),
    ],
)
def test_an_ending_is_told_in_words(ending: Ending, text: str) -> None:
    assert str(ending) == text
