"""The change of a time, attributed to ops."""

from __future__ import annotations

from enum import Enum

from pytest_ttnn_perf._base.dataclass import dataclass


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

    ``op`` is the op's code, ``signature`` its operands in one line, ``shape`` the shape to call it
    by and ``name`` what people call it; those of after, unless it was removed. ``count`` is per
    device, where it is largest; ``moved`` of them run at another place of the sequence.
    ``before_ns`` is what they took before. ``beside``: where a conversion came or went.
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
    name: str = ""
    beside: str = ""


@dataclass(frozen=True, slots=True)
class Attribution:
    """The change of a total in parts: ``after − before = sum of parts + unexplained``, exactly.

    The totals are kernel times of one device: the mean where there are several. ``unexplained_ns``
    is what ``unexplained_ops`` ops amount to that match and changed within noise. ``devices``
    counts those before and after; ``replayed`` tells that one replay of each trace stands for all.
    Of a ``region``, the totals are of its middle step, on the slowest device.
    """

    before_ns: float
    after_ns: float
    parts: tuple[Part, ...] = ()
    unexplained_ns: float = 0.0
    devices: tuple[int, int] = (1, 1)
    replayed: bool = False
    unexplained_ops: int = 0
    region: str | None = None

    @property
    def delta_ns(self) -> float:
        """The change of the total."""
        return self.after_ns - self.before_ns

    @property
    def op_list_changed(self) -> bool:
        """Whether other ops ran, not only slower or faster ones."""
        return any(part.change in {ChangeKind.ADDED, ChangeKind.REMOVED} for part in self.parts)


@dataclass(frozen=True, slots=True)
class Unmatched:
    """A region that only one of two captures has, and the time of a step of it."""

    side: str
    region: str
    step_ns: float


@dataclass(frozen=True, slots=True)
class CaptureComparison:
    """Two captures, region by region; ``notes`` say what is particular about them."""

    regions: tuple[Attribution, ...]
    unmatched: tuple[Unmatched, ...] = ()
    notes: tuple[str, ...] = ()
