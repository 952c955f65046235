"""What estimates of savings have been worth: real changes, and the 80 % intervals that follow.

The pairs are ops of real captures before and after a change, as ``docs/savings.py`` finds them;
a test compares them with the captures, where these are.
"""

from __future__ import annotations

from functools import cache
from math import inf
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


class Pair(NamedTuple):
    """A change that somebody made: what its rule promises of it, and what was gained.

    ``plain_us`` is what bytes and bandwidth alone promise, with no figure from any capture; None
    where nobody has reckoned that.
    """

    code: str
    change: str
    captures: str
    estimated_us: float
    gained_us: float
    plain_us: float | None = None

    @property
    def ratio(self) -> float | None:
        """What was gained, in parts of the estimate; None where that is next to nothing."""
        return _ratio(self.gained_us, self.estimated_us)


#: Less is nothing: ops of one capture differ by that.
_NOTHING_US: Final = 2.0


def _ratio(gained_us: float, estimated_us: float) -> float | None:
    return gained_us / estimated_us if estimated_us >= _NOTHING_US else None


_V1, _FINAL = "gemma_sliding_decode_replicated_v1", "gemma_sliding_decode_final"
_FULL, _FUSED, _F4 = (
    "gemma_31b_full_decode_multichip",
    "gemma_31b_fused_final",
    "gemma_31b_fused_f4",
)
_FALCON, _LLAMA, _OFT = "falcon3_7b_tp4", "llama_8b_multichip", "oft_2025_09_v2"
_TO_FINAL, _TO_V1 = f"{_V1} → {_FINAL}", f"{_FUSED} → {_V1}"
_LATER_OFT = f"{_OFT} → blackhole_oft_conv"
_BLOCKS: Final = "weights from bfloat16 to bfloat8_b, both interleaved"
_SHARDS: Final = "DRAM-sharded weights, inputs in L1 and LoFi"
_WHOLE: Final = "DRAM-sharded weights, whole on each device"
_FEW: Final = "bfloat4_b on 10 and 11 cores to DRAM-sharded weights"
_NORM: Final = "a norm of one row of tiles, from 1 core to shards on 32"
PAIRS: Final = (
    Pair("TTP101", f"{_BLOCKS}, 5376x16384", _TO_V1, 161.3, 193.0),
    Pair("TTP101", f"{_BLOCKS}, 8192x5376", _TO_V1, 80.6, 47.4),
    Pair("TTP103", "HiFi4 to HiFi2, of a matmul that does not wait for computing", "rt_detr", 0.0,
         -0.9),
    Pair("TTP311", f"{_SHARDS}, 5376x4096", _TO_FINAL, 40.8, 39.3, 35.7),
    Pair("TTP311", f"{_SHARDS}, 2048x5376", _TO_FINAL, 14.3, 16.0, 14.2),
    Pair("TTP311", f"{_SHARDS}, 5376x5120", _FULL, 40.0, 42.5, 32.4),
    Pair("TTP311", f"{_SHARDS}, 4096x5376", _FULL, 30.2, 34.4, 25.0),
    Pair("TTP311", f"{_WHOLE}, 5376x16384", _V1, 36.5, 52.9, 0.9),
    Pair("TTP311", f"{_WHOLE}, 8192x5376", _V1, 62.5, 72.0, 47.2),
    Pair("TTP311", f"{_WHOLE}, 5376x20480", _V1, 49.4, 69.7, 3.7),
    Pair("TTP311", f"{_WHOLE}, 16384x5376", _V1, 126.7, 145.9, 91.1),
    Pair("TTP311", "bfloat4_b at HiFi2 to DRAM-sharded weights and LoFi, 5376x21504", _V1, 9.2,
         22.3, 54.0),
    Pair("TTP311", "bfloat4_b at HiFi2 to DRAM-sharded weights and LoFi, 21504x5376", _V1, 222.8,
         240.5, 267.5),
    Pair("TTP311", "bfloat4_b at LoFi to DRAM-sharded weights, 5376x5376", _FINAL, 0.0, 0.3, 14.6),
    Pair("TTP311", f"{_FEW}, 3072x5760", _FALCON, 23.7, 19.8, 34.7),
    Pair("TTP311", f"{_FEW}, 5760x3072", _FALCON, 28.2, 28.6, 39.2),
    Pair("TTP311", f"{_FEW}, 3072x1280", _FALCON, 7.1, 8.9, 13.4),
    Pair("TTP311", f"{_FEW}, 768x3072", _FALCON, 2.5, 2.8, 8.3),
    Pair("TTP314", "a 1D program config with a fused GELU to a 2D one, for 4096 rows", _F4,
         14912.4, 7483.5),
    Pair("TTP305", "shards of a multiply from 8 to 24 cores", _TO_FINAL, 7.8, 8.7),
    Pair("TTP305", _NORM, _LLAMA, 40.1, 43.2),
    Pair("TTP305", _NORM, _FALCON, 18.7, 22.5),
    Pair("TTP703", "pairs of reduce-scatter and all-gather to all-reduces of bfloat8_b",
         f"{_FALCON} → falcon3_full", 38.4, 56.9),
    Pair("TTP307", "features sampled in parts instead of reshaped and permuted as a whole",
         _LATER_OFT, 501015.0, 500160.5),
    Pair("TTP307", "images no longer reshaped around convolutions", _LATER_OFT, 31872.1, 27554.4),
    Pair("TTP203", "features kept in one layout", _LATER_OFT, 82843.9, 101610.1),
    Pair("TTP302", "images sent as the first convolution takes them", _LATER_OFT, 11309.9, 10438.0),
    Pair("TTP305", "a group norm in two halves, on 20 cores instead of 8", _LATER_OFT, 9870.1,
         14584.2),
    Pair("TTP203", "convolutions that take and give one layout", _LATER_OFT, 2796.5, 2647.8),
    Pair("TTP607", "convolutions sharded by height, in larger blocks and at HiFi2", _LATER_OFT,
         35081.8, 65552.6),
)  # fmt: skip
#: These promise all that there is to gain: what they name can go, and no more. Others that name a
#: speed to get to, such as half of the full one, are no bounds: real changes got beyond it.
CEILINGS: Final = frozenset({"TTP302", "TTP402", "TTP603", "TTP608", "TTP704"})
#: What is known of a rule before the first change of its kind counts as so many pairs: estimates
#: that follow from bytes and bandwidth alone, beside what was gained.
_BEFORE: Final = 5.0
#: Rules with figures from these very captures: that they agree says half as much.
_FITTED: Final = frozenset({"TTP305", "TTP311", "TTP703"})
#: So many ratios stand for all: enough to tell a tenth.
PARTS: Final = 50
#: No single step may say more than this of a rule: a small promise is easily missed by much.
_MOST: Final = 2.0


class Spread(NamedTuple):
    """What is gained, in parts of the estimate: ``ratios`` are equally likely, and in order.

    ``expected`` is what the estimate is multiplied by: 1, but for what was ``tried`` here, which is
    the ratios of steps that did as the rule says. ``pairs`` is how many other changes of its kind
    there are.
    """

    ratios: tuple[float, ...]
    expected: float
    pairs: int
    tried: tuple[float, ...] = ()

    @property
    def low(self) -> float:
        """A tenth is less."""
        return self.ratios[PARTS // 10 - 1]

    @property
    def high(self) -> float:
        """A tenth is more."""
        return self.ratios[-PARTS // 10 - 1]


@cache
def spread_of(code: str, tried: tuple[float, ...] = ()) -> Spread:
    """Return what estimates of a rule are worth: of one without pairs, what any is worth.

    ``tried`` are the ratios of steps that were tried here; each counts as a pair.

    >>> spread_of("TTP102").pairs, spread_of("TTP311").pairs
    (0, 14)
    """
    return spread_from(code, PAIRS, tried)


def spread_from(code: str, pairs: Iterable[Pair], tried: Sequence[float] = ()) -> Spread:
    """Return the same, as it follows from some pairs."""
    listed = list(pairs)
    plain = [_ratio(one.gained_us, one.plain_us) for one in listed if one.plain_us is not None]
    before = [ratio for ratio in plain if ratio is not None]
    own = [one.ratio for one in listed if one.code == code and one.ratio is not None]
    weights = [(ratio, _BEFORE / len(before)) for ratio in before]
    weights += [(ratio, 0.5 if code in _FITTED else 1.0) for ratio in own]
    weights += [(ratio, 1.0) for ratio in tried]
    most = 1.0 if code in CEILINGS else inf
    ratios = tuple(min(max(0.0, ratio), most) for ratio in _quantiles(weights))
    return Spread(ratios, min(corrected(tried), most), len(own), tuple(tried))


def corrected(tried: Sequence[float]) -> float:
    """Return the mean of the ratios that steps had here, with five of 1 beside them.

    >>> corrected([]), corrected([0.4] * 5)
    (1.0, 0.7)
    """
    told = [min(max(0.0, ratio), _MOST) for ratio in tried]
    return (_BEFORE + sum(told)) / (_BEFORE + len(told))


def _quantiles(weights: Iterable[tuple[float, float]]) -> Iterator[float]:
    """Yield the least values that have so many parts of the weight below them or at them."""
    ordered = sorted(weights)
    whole, seen, at = sum(weight for _, weight in ordered), 0.0, -1
    for part in range(1, PARTS + 1):
        while at < len(ordered) - 1 and seen < part / PARTS * whole * (1 - 1e-9):
            at += 1
            seen += ordered[at][1]
        yield ordered[at][0]
