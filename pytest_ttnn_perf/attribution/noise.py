"""How much an op changes from one capture to the next when nothing has changed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import median_low
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

#: Between two replays of one trace (768 pairs of ops in seven captures of Blackhole chips) an op
#: differs by 0.9 % in the median, and by less than this sum in 96 of 100 cases, whether it takes
#: 1 µs or 1 ms. To ask for less than both 2 % and 1 µs would call 30 of 100 changed. The fraction
#: is also the gate's floor.
NOISE_FRACTION: Final = 0.02
NOISE_NS: Final = 250.0
#: Where most ops keep still, less than that is noise: so many times what the middle op changed by.
#: In those captures, one op in a hundred changed by more than 10 to 20 times as much.
_MEDIANS: Final = 10.0


@dataclass(frozen=True, slots=True)
class Noise:
    """The noise of a comparison: ``factor`` times the usual, at most 1."""

    factor: float = 1.0

    @classmethod
    def between(cls, times_ns: Sequence[tuple[float, float]]) -> Noise:
        """Return the noise of ops that nothing explains a change of: their times, two each."""
        if not times_ns:
            return cls()
        ratios = [abs(now - then) / _usual(then if then > now else now) for then, now in times_ns]
        return cls(min(1.0, _MEDIANS * median_low(ratios)))

    def covers(self, before_ns: float, after_ns: float, *, count: int = 1) -> bool:
        """Return whether so many ops, with these times in all, may differ by chance."""
        change = abs(after_ns - before_ns)
        each = _usual(max(before_ns, after_ns) / count)
        # Chance goes both ways: of n ops it adds up to √n, not n, times that of one.
        return not change or change < self.factor * math.sqrt(count) * each

    def ways(self, times_ns: Iterable[tuple[float, float]]) -> list[int]:
        """Return which way each op went: 1 got slower, -1 faster, 0 may have changed by chance."""
        factor = self.factor
        return [
            0
            if then == now or abs(now - then) < factor * _usual(then if then > now else now)
            else (1 if now > then else -1)
            for then, now in times_ns
        ]


def _usual(kernel_ns: float) -> float:
    return NOISE_NS + NOISE_FRACTION * kernel_ns
