"""What two op tables differ in, so that a change of the total can be named."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class ChangeKind(Enum):
    """What became of a group of ops."""

    SLOWER = "slower"
    FASTER = "faster"
    ADDED = "added"
    REMOVED = "removed"


@dataclass(frozen=True, slots=True)
class Cause:
    """A difference between matched ops that may explain their times, e.g. cores 64 → 32."""

    what: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Part:
    """A group of like ops that changed alike. ``delta_ns`` is the change they make to the total.

    ``op`` is the op's code, ``signature`` its operands in one line; ``moved`` of the ``count`` ops
    run at another place of the sequence.
    """

    change: ChangeKind
    op: str
    signature: str
    count: int
    delta_ns: float
    causes: tuple[Cause, ...] = ()
    moved: int = 0


@dataclass(frozen=True, slots=True)
class Attribution:
    """The change of a total in parts: ``after − before = sum of parts + unexplained``, exactly.

    ``unexplained_ns`` is what ops that match and changed within noise amount to.
    """

    before_ns: float
    after_ns: float
    parts: tuple[Part, ...] = ()
    unexplained_ns: float = 0.0

    @property
    def delta_ns(self) -> float:
        """The change of the total."""
        return self.after_ns - self.before_ns

    @property
    def op_list_changed(self) -> bool:
        """Whether other ops ran, not only slower or faster ones."""
        return any(part.change in {ChangeKind.ADDED, ChangeKind.REMOVED} for part in self.parts)
