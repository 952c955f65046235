"""What two op tables differ in, so that a change of the total can be named."""

from __future__ import annotations

from enum import Enum
from typing import Final

from pytest_ttnn_perf._base.dataclass import dataclass

#: How TTNN ends the codes of its device operations, the longest first.
_SUFFIXES: Final = ("DeviceOperation", "Operation", "DeviceOp")


def short_code(op: str) -> str:
    """Return an op's code as people say it: without namespaces and the word operation.

    >>> short_code("ttnn::operations::conv::Conv2dDeviceOperation")
    'Conv2d'
    """
    name = op.rpartition("::")[2]
    return next((name[: -len(end)] for end in _SUFFIXES if name.endswith(end)), name) or op


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

    def __str__(self) -> str:
        return f"{self.what} {self.before} → {self.after}"


@dataclass(frozen=True, slots=True)
class Part:
    """A group of like ops that changed alike. ``delta_ns`` is the change they make to the total.

    ``op`` is the op's code, ``signature`` its operands in one line and ``shape`` the shape to call
    it by; those of after, unless it was removed. ``count`` is per device, where it is largest;
    ``moved`` of them run at another place of the sequence. ``before_ns`` is what they took before.
    """

    change: ChangeKind
    op: str
    signature: str
    count: int
    delta_ns: float
    causes: tuple[Cause, ...] = ()
    moved: int = 0
    shape: str = ""
    before_ns: float = 0.0


@dataclass(frozen=True, slots=True)
class Attribution:
    """The change of a total in parts: ``after − before = sum of parts + unexplained``, exactly.

    The totals are kernel times of one device: the mean where there are several. ``unexplained_ns``
    is what ops that match and changed within noise amount to. ``devices`` counts those before and
    after; ``replayed`` tells that one replay of each trace stands for all of them.
    """

    before_ns: float
    after_ns: float
    parts: tuple[Part, ...] = ()
    unexplained_ns: float = 0.0
    devices: tuple[int, int] = (1, 1)
    replayed: bool = False

    @property
    def delta_ns(self) -> float:
        """The change of the total."""
        return self.after_ns - self.before_ns

    @property
    def op_list_changed(self) -> bool:
        """Whether other ops ran, not only slower or faster ones."""
        return any(part.change in {ChangeKind.ADDED, ChangeKind.REMOVED} for part in self.parts)
