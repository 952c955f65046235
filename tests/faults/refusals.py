"""What a refusal looks like: one line for the user, and no trace of our code."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.harness.project import Ran

UNREADABLE = 3
USAGE = 2
PYTEST_USAGE = 4


def assert_refused(ran: Ran, *, code: int, says: tuple[str, ...]) -> None:
    """Check the exit code, that there is one line of error, and what it says."""
    assert_no_traceback(ran)
    lines = [line for line in ran.errors.splitlines() if line.strip()]
    assert len(lines) == 1, ran.errors
    assert lines[0].startswith(("ttnn-perf: ", "ERROR: "))
    for fragment in says:
        assert fragment in lines[0]
    assert ran.code == code


def assert_no_traceback(ran: Ran) -> None:
    """Check that nothing of our code shows."""
    for text in (ran.text, ran.errors):
        assert "Traceback" not in text
        assert "INTERNALERROR" not in text
        assert "pytest_ttnn_perf/" not in text
