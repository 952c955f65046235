"""What a run says about the machine it ran on, rather than about one test."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Shift:
    """Most tests moved the same way, which no single change to the code explains.

    ``change`` is the median change over the tests that vote, as a fraction; positive is worse.
    ``moved`` of the ``voting`` tests did. ``differences`` says what else is not as it was when the
    baselines were accepted.
    """

    change: float
    moved: int
    voting: int
    differences: tuple[str, ...] = ()

    @property
    def worse(self) -> bool:
        """Whether the machine is slower, not faster."""
        return self.change > 0
