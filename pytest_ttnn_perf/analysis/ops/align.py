"""Attribute the change between two op tables to ops.

Ops of both tables are numbered, matched in their order, and compared: what differs between matched
ops is a cause, an op without a match was added or removed, and changes within noise are left.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict, deque
from enum import Enum
from functools import cache, lru_cache
from itertools import chain, pairwise
from operator import ne
from statistics import median, median_low
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from pytest_ttnn_perf.analysis.ops.names import (
    BLOCKS,
    ELEMENTWISE,
    PROGRAM,
    SHARD_GRID,
    SHARD_ORDER,
    SHARD_SHAPE,
    between_text,
    calling_shape,
    condense_settings,
    cores_of,
    function_in,
    is_conversion,
    is_grid,
    neighbours,
    op_and_function,
    op_name,
    operands_text,
    settings_in,
    shape_text,
)
from pytest_ttnn_perf.analysis.ops.regions import Basis, Lane, middle_lane
from pytest_ttnn_perf.core.ops import Columns, OpGroup, OpGroups, OpTable, short_code

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence

    from pytest_ttnn_perf.analysis.ops.regions import Region
    from pytest_ttnn_perf.core.ops import Signature, Tensor

    #: Name of a property, and its value before and after.
    Difference = tuple[str, str | None, str | None]


class ChangeKind(Enum):
    """Kinds of changes of a group of ops."""

    SLOWER = "slower"
    FASTER = "faster"
    ADDED = "added"
    REMOVED = "removed"


class Cause(Struct, frozen=True):
    """A difference between matched ops, e.g. cores 64 → 32."""

    what: str
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.what} {self.before} → {self.after}"


class Part(Struct, frozen=True):
    """A group of ops that changed alike.

    ``op`` is the op's code, ``signature`` its operands in one line, ``shape`` the shape to call it
    by and ``name`` what people call it; those of after, unless it was removed. ``count`` is per
    device, where it is largest; ``moved`` of them run at another place of the sequence.
    ``before_ns`` is what they took before. ``beside``: where a conversion came or went. A changed
    setting is named though its change is ``within_noise``. ``predicted_ns`` is what a finding on
    the ops before, ``predicted_by``, would have saved.
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
    within_noise: bool = False
    predicted_ns: float | None = None
    predicted_by: str = ""


class Attribution(Struct, frozen=True):
    """A change in parts: ``after − before = parts + unexplained``, exactly.

    The totals are kernel times of the middle step of a ``region``, on its slowest device.
    ``unexplained_ns`` is what ``unexplained_ops`` ops amount to that match and changed within
    noise. ``devices`` counts those before and after; ``replayed``: the steps are of a trace.
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
        return self.after_ns - self.before_ns

    @property
    def op_list_changed(self) -> bool:
        return any(part.change in {ChangeKind.ADDED, ChangeKind.REMOVED} for part in self.parts)


# Variants of ops by number, so that sequences of thousands compare as integers.

#: Codes that TTNN renamed; the op is the same. Until 2025 a convolution was OptimizedConvNew.
_RENAMED: Final = {"OptimizedConvNew": "Conv2d"}


class Variant(NamedTuple):
    """An op with everything that may explain its time."""

    signature: Signature
    cores: int | None
    fidelity: str | None
    attributes: str


class Catalogue:
    """The variants of two tables, and numbers that equal traits share.

    ``code``: what it computes. ``exact``: that and its operands. ``padded``, ``logical``: that and
    those shapes of all operands. ``ends``: that and the padded shapes of the first input and the
    first output. ``format``: formats and ranks of the operands.
    """

    def __init__(self) -> None:
        self.variants: list[Variant] = []
        self.exact: list[int] = []
        self.padded: list[int] = []
        self.logical: list[int] = []
        self.ends: list[int] = []
        self.code: list[int] = []
        self.format: list[int] = []
        self._numbers: dict[Variant, int] = {}
        self._traits: dict[Hashable, int] = {}

    def numbered(self, table: OpTable) -> list[int]:
        """Return the variants of a table's rows, by number."""
        c = table.columns
        rows = list(zip(c.signature, c.cores, c.fidelity, c.attributes, strict=True))
        numbers = {
            row: self._number(
                Variant(
                    table.signatures[row[0]],
                    row[1],
                    None if row[2] < 0 else table.fidelities[row[2]],
                    "" if row[3] < 0 else table.attribute_texts[row[3]],
                )
            )
            for row in dict.fromkeys(rows)
        }
        return [numbers[row] for row in rows]

    def _number(self, variant: Variant) -> int:
        number = self._numbers.setdefault(variant, len(self.variants))
        if number < len(self.variants):
            return number
        self.variants.append(variant)
        _, inputs, outputs = variant.signature
        code = _plain_code(variant.signature.op)
        if code.startswith(ELEMENTWISE):
            code += function_in(variant.attributes)
        sides = (inputs, outputs)
        padded = [tuple([tensor.padded for tensor in side]) for side in sides]
        logical = [tuple([tensor.logical or tensor.padded for tensor in side]) for side in sides]
        formats = [tuple([(t.dtype, t.layout, len(t.padded)) for t in side]) for side in sides]
        for numbers, trait in (
            (self.exact, (code, inputs, outputs)),
            (self.padded, (code, *padded)),
            (self.logical, (code, *logical)),
            (self.ends, (code, padded[0][:1], padded[1][:1])),
            (self.code, code),
            (self.format, tuple(formats)),
        ):
            numbers.append(self._traits.setdefault(trait, len(self._traits)))
        return number


@lru_cache(maxsize=1024)
def _plain_code(op: str) -> str:
    short = short_code(op)
    return _RENAMED.get(short, short)


# Causes: differences between an op and its counterpart.

#: What usually costs most stands first: another amount of work, then where it runs and where its
#: operands lie, then their formats, then how it is cut. Equals keep their order.
_RANKS: Final = {
    what: rank
    for rank, whats in enumerate([
        ("shape", "inputs", "outputs", "input_tensor_shape", "activation"),
        ("cores", "shard cores", "shard shape", "shard grid"),
        ("memory",),
        ("dtype", "layout"),
        ("fidelity",),
        (PROGRAM,),
        BLOCKS,
    ])
    for what in whats
}  # fmt: skip
_LAST: Final = max(_RANKS.values()) + 1
#: The readers of weights that lie in all banks of the DRAM: their number is that of the banks, and
#: a capture's count of cores does not matter.
_FROM_BANKS: Final = "DRAMSharded"


def causes_between(before: Variant, after: Variant) -> tuple[Cause, ...]:
    """Return the differences between two variants, what usually costs most first.

    A property that one side lacks is no difference: older captures, and baselines that were written
    by an older version, have fewer.
    """
    found = [
        Cause(what, then, now)
        for what, then, now in _differences(before, after)
        if then and now and now != then
    ]
    banks = any(_FROM_BANKS in each.attributes for each in (before, after))

    def rank(cause: Cause) -> int:
        what = cause.what
        if banks and what == "cores":
            return _LAST
        return _RANKS.get(what.rpartition(" ")[2] if what[:2] in {"in", "ou"} else what, _LAST)

    return tuple(sorted(found, key=rank))


def _differences(before: Variant, after: Variant) -> Iterator[Difference]:
    yield "cores", str(before.cores or ""), str(after.cores or "")
    yield "fidelity", before.fidelity, after.fidelity
    if before.signature != after.signature:
        ours, theirs = before.signature, after.signature
        yield from _operand_differences("in", ours.inputs, theirs.inputs)
        yield from _operand_differences("out", ours.outputs, theirs.outputs)
    if before.attributes != after.attributes:
        then, now = dict(settings_in(before.attributes)), dict(settings_in(after.attributes))
        grids = then.pop(SHARD_GRID, ""), now.pop(SHARD_GRID, "")
        if all(map(is_grid, grids)):
            cores = [str(cores_of(grid)) for grid in grids]
            yield "shard cores", cores[0], cores[1]
            if cores[0] == cores[1]:
                yield "shard grid", *grids
        yield "shard shape", then.pop(SHARD_SHAPE, None), now.get(SHARD_SHAPE)
        yield "shard orientation", then.pop(SHARD_ORDER, None), now.get(SHARD_ORDER)
        for key, value in then.items():
            yield key, value, now.get(key)


def _operand_differences(
    side: str, before: tuple[Tensor, ...], after: tuple[Tensor, ...]
) -> Iterator[Difference]:
    """Yield the differences of operands, the largest operand first."""
    if len(before) != len(after):
        yield f"{side}puts", str(len(before)), str(len(after))
    pairs = list(enumerate(zip(before, after, strict=False)))
    pairs.sort(key=lambda pair: -max(math.prod(tensor.padded) for tensor in pair[1]))
    for place, (then, now) in pairs:
        if then == now:
            continue
        name = f"{side}{place}"
        yield f"{name} dtype", then.dtype, now.dtype
        yield f"{name} memory", then.memory, now.memory
        yield f"{name} layout", then.layout, now.layout
        shapes = then.padded, now.padded
        if then.logical is not None and now.logical is not None:
            shapes = then.logical, now.logical  # padding follows from the layout
        yield f"{name} shape", shape_text(shapes[0]), shape_text(shapes[1])


# Groups of like ops, as baselines store them, and the change between two such tables.

#: Ops of one name are of different kinds where one takes less than this part of the next longer.
_APART: Final = 0.8
#: How much of a stored time its digits leave open.
_ROUNDING: Final = 1e-6
#: Means over devices are kept to the picosecond.
_DECIMALS: Final = 3
#: The format of a table of which only groups are known: its ops have no order.
GROUPED: Final = "grouped"


def group_ops(table: OpTable, lane: Lane) -> OpGroups:
    """Group ops of one signature that are set up alike.

    Fallbacks to the host are added, unless the ops are of a trace, which has none.
    """
    groups: dict[tuple[Signature, int | None, str | None, str], list[float]] = defaultdict(list)
    c = table.columns
    on_host = [] if table.traces else [(row, 0.0) for row, host in enumerate(c.host) if host]
    for row, kernel_ns in chain(zip(lane.rows, lane.kernel_ns, strict=True), on_host):
        fidelity, attributes = c.fidelity[row], c.attributes[row]
        likeness = (
            table.signatures[c.signature[row]],
            c.cores[row],
            None if fidelity < 0 else table.fidelities[fidelity],
            "" if attributes < 0 else condense_settings(table.attribute_texts[attributes]),
        )
        groups[likeness].append(kernel_ns)
    found = [
        OpGroup(
            *likeness,
            count=len(times),
            total_ns=round(sum(times), _DECIMALS),
            median_ns=round(median(times), _DECIMALS),
        )
        for likeness, all_ns in groups.items()
        for times in ([all_ns] if likeness[0].inputs or likeness[0].outputs else _by_time(all_ns))
    ]
    return OpGroups(table.kernel_time, tuple(sorted(found, key=_group_order)))


def _by_time(all_ns: list[float]) -> Iterator[list[float]]:
    """Separate ops without operands by their times."""
    ordered = sorted(all_ns, reverse=True)
    steps = [now for then, now in pairwise(ordered) if now < _APART * then]
    bounds = [math.inf, *(math.nextafter(step, math.inf) for step in steps), -math.inf]
    for above, below in pairwise(bounds):
        yield [ns for ns in all_ns if below <= ns < above]


def _group_order(group: OpGroup) -> tuple[object, ...]:
    signature = group.signature
    shapes = [tensor.padded for tensor in (*signature.inputs, *signature.outputs)]
    setup = (group.settings, str(group.cores), str(group.fidelity))
    return signature.op, shapes, repr(signature), -group.median_ns, setup


def attribute_groups(before: OpGroups, after: OpGroups) -> Attribution | None:
    """Attribute the change between two tables of groups.

    The order of the ops is unknown: so are moves, and an op has the mean time of its group. Times
    of different columns are different quantities: None is returned for them.
    """
    if before.kernel_time != after.kernel_time:
        return None
    then, now = _expand_groups(before), _expand_groups(after)
    lanes = [Lane(range(len(table)), table.columns.kernel_ns) for table in (then, now)]
    return _attributed(then, now, lanes[0], lanes[1])


def attribute_regions(
    before: OpGroups, after: OpGroups, times_ns: Mapping[str, tuple[float, float]]
) -> Iterator[tuple[str, Attribution | None]]:
    """Yield the change of each common region; None if not comparable.

    The tables are of one session each, and ``times_ns``, then and now, may be of several: what
    these differ by besides is left to the other ops.
    """
    for region, (then, now) in times_ns.items():
        if region not in before.regions or region not in after.regions:
            continue
        found = attribute_groups(before.of(region), after.of(region))
        if found is not None and abs(now - then - found.delta_ns) > _ROUNDING * then:
            rest = (now - then) - sum(part.delta_ns for part in found.parts)
            found = replace(found, before_ns=then, after_ns=now, unexplained_ns=rest)
        yield region, found


def _expand_groups(ops: OpGroups) -> OpTable:
    """Return a table with each op of the groups, on one device."""
    groups = ops.groups
    rows = [place for place, group in enumerate(groups) for _ in range(group.count)]
    fidelities = list(dict.fromkeys(g.fidelity for g in groups if g.fidelity is not None))
    numbers = {fidelity: number for number, fidelity in enumerate(fidelities)}
    unknown = [None] * len(rows)
    return OpTable(
        format=GROUPED,
        rows=len(rows),
        columns=Columns(
            signature=rows,
            device=[0] * len(rows),
            kernel_ns=[groups[row].total_ns / groups[row].count for row in rows],
            fw_ns=unknown,
            gap_ns=unknown,
            ideal_ns=unknown,
            cores=[groups[row].cores for row in rows],
            fidelity=[numbers.get(groups[row].fidelity or "", -1) for row in rows],
            attributes=rows,
            trace=unknown,
            replay=unknown,
            start_cycle=unknown,
            host=[False] * len(rows),
        ),
        signatures=[group.signature for group in groups],
        fidelities=fidelities,
        attribute_texts=[group.settings for group in groups],
        kernel_time=ops.kernel_time,
    )


# Matching: which op of one sequence stands for which op of another.

#: How many items of each side are searched at once: memory grows with its square, 3 MB here.
_WINDOW: Final = 4096
#: Stands for no match.
NONE: Final = -1
Pairs = list[tuple[int, int]]


def common_subsequence(a: Sequence[int], b: Sequence[int]) -> Pairs:
    """Return the indices of a longest common subsequence, or nearly so.

    >>> common_subsequence([1, 2, 3, 4], [1, 3, 5, 4])
    [(0, 0), (2, 1), (3, 3)]
    """
    shared = {*a} & {*b}
    # An item that the other side lacks cannot be paired, but would take time.
    ours = [i for i, item in enumerate(a) if item in shared]
    theirs = [j for j, item in enumerate(b) if item in shared]
    found = _pairs([a[i] for i in ours], [b[j] for j in theirs])
    return [(ours[i], theirs[j]) for i, j in found]


def _pairs(a: Sequence[int], b: Sequence[int]) -> Pairs:
    head = _common_length(a, b)
    tail = _common_length(a[: head - len(a) - 1 : -1], b[: head - len(b) - 1 : -1])
    pairs = [(i, i) for i in range(head)]
    a_end, b_end = len(a) - tail, len(b) - tail
    x = y = head
    while x < a_end and y < b_end:
        rows = _table_rows(a[x : min(a_end, x + _WINDOW)], b[y : min(b_end, y + _WINDOW)])
        found = _trace_back(rows)
        if max(a_end - x, b_end - y) > _WINDOW:
            # Of a part, the first half is sure; the next search begins where it ends.
            found = found[: len(found) // 2]
            i, j = found[-1] if found else (_WINDOW // 2, _WINDOW // 2)
        else:
            i, j = a_end, b_end
        pairs += [(x + i, y + j) for i, j in found]
        x, y = x + i + 1, y + j + 1
    return pairs + [(a_end + i, b_end + i) for i in range(tail)]


def _common_length(a: Sequence[int], b: Sequence[int]) -> int:
    return next((i for i, differ in enumerate(map(ne, a, b)) if differ), min(len(a), len(b)))


def _table_rows(a: Sequence[int], b: Sequence[int]) -> list[int]:
    """Return the rows of the table of longest common subsequences, as bits.

    In each, for the items of ``a`` up to one, bit j is clear where a longer common subsequence ends
    with ``b[j]`` than anywhere before. The first row is before any item of ``a``.
    """
    places: dict[int, int] = {}
    for j, item in enumerate(b):
        places[item] = places.get(item, 0) | 1 << j
    row = full = (1 << len(b)) - 1
    rows = [row]
    for item in a:
        met = row & places.get(item, 0)
        row = (row + met | row - met) & full
        rows.append(row)
    return rows


def _trace_back(rows: Sequence[int]) -> Pairs:
    """Return the pairs of a longest common subsequence."""
    pairs: Pairs = []
    lower = rows[0]
    j = (rows[-1] & lower ^ lower).bit_length() - 1  # the last bit that is clear
    for i in range(len(rows) - 2, -1, -1):
        if j < 0:
            break
        if rows[i] >> j & 1:  # without this item, nothing longer ends there: so it is one of them
            pairs.append((i, j))
            lower = (1 << j) - 1
            j = (rows[i] & lower ^ lower).bit_length() - 1
    return pairs[::-1]


def match(
    before: Sequence[int], after: Sequence[int], catalogue: Catalogue
) -> tuple[list[int], dict[int, int]]:
    """Match two sequences of variants; unmatched ops came or went.

    Returns for each op before the place of the op after that stands for it, or NONE; and, by their
    places, those that have moved: they do not keep the order, and the first list leaves them out.

    An op is the same where code and padded shapes are and the order of ops is kept: whatever else
    differs is a cause. Between such matches, equal logical shapes are enough (another layout pads
    otherwise), then equal shapes of what goes in and comes out first (an operand more). Of what is
    left, ops with the very same operands have moved; and between the matches, shapes may differ in
    one dimension (another batch or length).

    Both directions give the same matches: a search that starts from the other side may settle a tie
    in another way, so the two sequences are always searched in the same order.
    """
    variants = catalogue.variants
    differing = ((i, j) for i, j in zip(before, after, strict=False) if i != j)
    ours, theirs = next(differing, (NONE, NONE))
    in_order = len(before) <= len(after)
    if ours != theirs:
        in_order = repr(variants[ours]) < repr(variants[theirs])
    if in_order:
        return _match_in_order(before, after, catalogue)
    to, moved = _match_in_order(after, before, catalogue)
    return _inverted(to, len(before)), {i: j for j, i in moved.items()}


def _match_in_order(
    a: Sequence[int], b: Sequence[int], catalogue: Catalogue
) -> tuple[list[int], dict[int, int]]:
    to = [NONE] * len(a)
    _fill(to, a, b, catalogue.padded)
    if NONE not in to and len(a) == len(b):
        return to, {}
    _fill(to, a, b, catalogue.logical)
    _fill(to, a, b, catalogue.ends)
    moved = _find_moved(to, a, b, catalogue.exact)
    _fill_resized(to, moved, a, b, catalogue)
    return to, moved


def _inverted(to: Sequence[int], length: int) -> list[int]:
    back = [NONE] * length
    for i, j in enumerate(to):
        if j != NONE:
            back[j] = i
    return back


def _next_run(to: Sequence[int], start: int) -> tuple[int, int] | None:
    """Return start and end of the next run without a match."""
    try:
        start = to.index(NONE, start)
    except ValueError:
        return None
    return start, next((at for at in range(start, len(to)) if to[at] != NONE), len(to))


def _fill(to: list[int], a: Sequence[int], b: Sequence[int], alike: Sequence[int]) -> None:
    """Match ops that are alike in another way between two matches."""
    if {alike[variant] for variant in set(a)}.isdisjoint(alike[variant] for variant in set(b)):
        return
    run = _next_run(to, 0)
    while run:
        start, end = run
        other = to[start - 1] + 1 if start else 0
        other_end = to[end] if end < len(to) else len(b)
        if other < other_end:
            ours = [alike[variant] for variant in a[start:end]]
            theirs = [alike[variant] for variant in b[other:other_end]]
            for x, y in common_subsequence(ours, theirs):
                to[start + x] = other + y
        run = _next_run(to, end)


def _find_moved(
    to: Sequence[int], a: Sequence[int], b: Sequence[int], alike: Sequence[int]
) -> dict[int, int]:
    """Match equal ops that are left, in order of their places."""
    waiting: defaultdict[int, deque[int]] = defaultdict(deque)
    for j in sorted(set(range(len(b))).difference(to)):
        waiting[alike[b[j]]].append(j)
    return {
        i: places.popleft()
        for i, j in enumerate(to)
        if j == NONE and (places := waiting.get(alike[a[i]]))
    }


def _fill_resized(
    to: list[int],
    moved: Mapping[int, int],
    a: Sequence[int],
    b: Sequence[int],
    catalogue: Catalogue,
) -> None:
    """Match ops that differ in one dimension of each operand."""
    ours, theirs, filled = list(a), list(b), to.copy()
    for i, j in moved.items():
        ours[i], theirs[j] = -1, -2  # the last two numbers: like nothing
    _fill(filled, ours, theirs, [*catalogue.code, -1, -2])
    for i, j in enumerate(filled):
        if to[i] == j or catalogue.format[a[i]] != catalogue.format[b[j]]:
            continue
        before, after = catalogue.variants[a[i]].signature, catalogue.variants[b[j]].signature
        pairs = zip(before.inputs + before.outputs, after.inputs + after.outputs, strict=True)
        if all(sum(map(ne, then.padded, now.padded)) <= 1 for then, now in pairs):
            to[i] = j


# The ops before and after, and their noise.


class Strand(NamedTuple):
    """The ops of a lane: number of the variant, time in units."""

    variants: tuple[int, ...]
    units: Sequence[int]


#: Between two replays of one trace (768 pairs of ops in seven captures of Blackhole chips) an op
#: differs by 0.9 % in the median, and by less than this sum in 96 of 100 cases, whether it takes
#: 1 µs or 1 ms. To ask for less than both 2 % and 1 µs would call 30 of 100 changed. The fraction
#: is also the gate's floor.
NOISE_FRACTION: Final = 0.02
NOISE_NS: Final = 250.0
#: Where most ops keep still, less than that is noise: so many times what the middle op changed by.
#: In those captures, one op in a hundred changed by more than 10 to 20 times as much.
_MEDIANS: Final = 10.0


def _noise_between(times_ns: Sequence[tuple[float, float]]) -> float:
    """Return the noise of ops without a cause; 1 is usual."""
    ratios = [abs(now - then) / _usual(max(then, now)) for then, now in times_ns]
    return min(1.0, _MEDIANS * median_low(ratios)) if ratios else 1.0


def is_chance(before_ns: float, after_ns: float, *, count: int = 1, noise: float = 1.0) -> bool:
    """Return whether so many ops may differ by chance."""
    change = abs(after_ns - before_ns)
    each = _usual(max(before_ns, after_ns) / count)
    # Chance goes both ways: of n ops it adds up to √n, not n, times that of one.
    return not change or change < noise * math.sqrt(count) * each


def _usual(kernel_ns: float) -> float:
    return NOISE_NS + NOISE_FRACTION * kernel_ns


# Changes of matched, added and removed ops, grouped by what they have in common.


class Kind(Struct, eq=False):
    """The common properties of like changes; equal only to itself.

    ``listed``: the op came or went. ``variant`` is that of after, if there is one; ``name`` what
    people call it, ``beside`` between which ops it stands.
    """

    variant: Variant
    name: str
    beside: str
    listed: ChangeKind | None
    causes: tuple[Cause, ...]


class Change(NamedTuple):
    """An op before and after, in units.

    One that came has none before, one that went none after.
    """

    kind: Kind
    before: int
    after: int
    moved: bool = False


def _changed_groups(
    changes: Iterable[Change], *, unit_ns: float
) -> list[tuple[list[Change], bool]]:
    """Return the groups that changed, and whether by no more than noise.

    Ops that came or went always changed, and so did those with a cause: what is set up alike
    changes alike. Ops without one are judged each for itself: one of many may be the culprit.
    """
    groups: defaultdict[Kind, list[Change]] = defaultdict(list)
    for change in changes:
        groups[change.kind].append(change)
    unexplained = [own for kind, own in groups.items() if not kind.causes]
    noise = _noise_between([
        (change.before * unit_ns, change.after * unit_ns)
        for own in unexplained
        for change in own
    ])  # fmt: skip

    def is_noise(*groups: list[Change]) -> bool:
        before = sum(change.before for group in groups for change in group) * unit_ns
        after = sum(change.after for group in groups for change in group) * unit_ns
        count = sum(map(len, groups))
        return is_chance(before, after, count=count, noise=noise)

    found = [
        (own, not kind.listed and is_noise(own))
        for kind, own in groups.items()
        if kind.listed or kind.causes
    ]
    for own in unexplained:
        ways: dict[int, list[Change]] = {1: [], -1: [], 0: []}
        for change in own:
            then, now = change.before * unit_ns, change.after * unit_ns
            chance = is_chance(then, now, noise=noise)
            ways[0 if chance else 1 if now > then else -1].append(change)
        # Where some of a kind got slower and others faster, and it comes to nothing, that is noise.
        if not (ways[1] and ways[-1] and is_noise(*ways.values())):
            found += ((own, False) for own in (ways[1], ways[-1]) if own)
    return found


class Fates:
    """Finds the changes of ops; like changes share a kind.

    In strands that are not ``ordered`` no op stands next to another.
    """

    def __init__(self, catalogue: Catalogue, *, ordered: bool) -> None:
        self._catalogue = catalogue
        self._ordered = ordered
        self._kinds: dict[object, Kind] = {}

    def of(self, before: Strand, after: Strand) -> Iterator[Change]:
        to, moved = match(before.variants, after.variants, self._catalogue)
        kept = {i: j for i, j in enumerate(to) if j != NONE}
        kind_of = cache(self._matched)
        for pairs in (kept, moved):
            for i, j in pairs.items():
                kind = kind_of(before.variants[i], after.variants[j])
                yield Change(kind, before.units[i], after.units[j], moved=pairs is moved)
        gone = set(range(len(before.variants))).difference(kept, moved)
        come = set(range(len(after.variants))).difference(kept.values(), moved.values())
        for kind, i in self._listed(before.variants, gone, ChangeKind.REMOVED):
            yield Change(kind, before.units[i], 0)
        for kind, j in self._listed(after.variants, come, ChangeKind.ADDED):
            yield Change(kind, 0, after.units[j])

    def _matched(self, before: int, after: int) -> Kind:
        ours, theirs = self._catalogue.variants[before], self._catalogue.variants[after]
        return self._kind(theirs, None, causes_between(ours, theirs), before=ours.signature)

    def _kind(
        self,
        variant: Variant,
        listed: ChangeKind | None,
        causes: tuple[Cause, ...],
        *,
        before: Signature | None = None,
        beside: str = "",
    ) -> Kind:
        name = op_name(variant.signature, variant.attributes)
        key = (before, variant.signature, name, beside, listed, causes)
        return self._kinds.setdefault(key, Kind(variant, name, beside, listed, causes))

    def _listed(
        self, variants: Sequence[int], places: Iterable[int], change: ChangeKind
    ) -> Iterator[tuple[Kind, int]]:
        """Yield the kinds of ops without a match, and their places.

        The cause is how many of an op there are on its side, and how many of them have a match.
        """
        by_variant: defaultdict[int, list[int]] = defaultdict(list)
        for place in places:
            by_variant[variants[place]].append(place)
        exact = self._catalogue.exact
        present = Counter(exact[variant] for variant in variants)
        matched = present.copy()
        for variant, own in by_variant.items():
            matched[exact[variant]] -= len(own)
        for variant, own in by_variant.items():
            counts = str(present[exact[variant]]), str(matched[exact[variant]])
            cause = Cause("count", *(counts if change is ChangeKind.REMOVED else counts[::-1]))
            beside = self._beside(own, variants)
            kind = self._kind(self._catalogue.variants[variant], change, (cause,), beside=beside)
            for place in own:
                yield kind, place

    def _beside(self, places: Sequence[int], variants: Sequence[int]) -> str:
        """Name the neighbours of conversions."""
        ops = self._catalogue.variants
        if not self._ordered or not is_conversion(ops[variants[places[0]]].signature.op):
            return ""

        def name_at(at: int | None) -> str | None:
            if at is None:
                return None
            return op_and_function(ops[variants[at]].signature.op, ops[variants[at]].attributes)

        found = (
            neighbours(place, len(variants), lambda at: ops[variants[at]].signature)
            for place in sorted(places)
        )
        return between_text(Counter(tuple(map(name_at, pair)) for pair in found))


#: Times are counted in units of 2⁻¹⁰ ns, finer than any capture has them ...
_FINEST: Final = -10
#: ... or in coarser ones, if the sum of all would need more bits than a float adds up exactly.
_EXACT_BITS: Final = 52


def attribute(before: OpTable, after: OpTable, regions: tuple[Region, Region]) -> Attribution:
    """Attribute the change of the kernel time between two captures.

    Of ``regions``, the middle step on its slowest device is compared, which is what their times are
    of. Parts and ``unexplained_ns`` add up to the change exactly, as floats and in any order.
    Swapping the tables negates all of them.
    """
    lanes = middle_lane(before, regions[0]), middle_lane(after, regions[1])
    return replace(
        _attributed(before, after, *lanes),
        devices=(len(before.devices) or 1, len(after.devices) or 1),
        replayed=any(region.basis is Basis.REPLAYS for region in regions),
        region=regions[1].name,
    )


def _attributed(before: OpTable, after: OpTable, our_lane: Lane, their_lane: Lane) -> Attribution:
    total_ns = sum(our_lane.kernel_ns) + sum(their_lane.kernel_ns)
    unit_ns = 2.0 ** max(_FINEST, math.frexp(total_ns)[1] - _EXACT_BITS)
    catalogue = Catalogue()

    def strand(table: OpTable, lane: Lane) -> Strand:
        numbers = catalogue.numbered(table)
        units = [round(ns / unit_ns) for ns in lane.kernel_ns]
        return Strand(tuple([numbers[row] for row in lane.rows]), units)

    ours, theirs = strand(before, our_lane), strand(after, their_lane)
    fates = Fates(catalogue, ordered=GROUPED not in {before.format, after.format})
    changes = list(fates.of(ours, theirs))
    groups = _changed_groups(changes, unit_ns=unit_ns)
    before_ns, after_ns = sum(ours.units) * unit_ns, sum(theirs.units) * unit_ns
    parts = sorted((_part(*group, unit_ns) for group in groups), key=_part_order)
    return Attribution(
        before_ns,
        after_ns,
        tuple(parts),
        (after_ns - before_ns) - sum(part.delta_ns for part in parts),
        unexplained_ops=len(changes) - sum(len(group) for group, _ in groups),
    )


def _part(group: list[Change], within_noise: bool, unit_ns: float) -> Part:  # noqa: FBT001 (of a pair)
    kind = group[0].kind
    signature, _, _, attributes = kind.variant
    before = sum(change.before for change in group)
    delta = sum(change.after for change in group) - before
    return Part(
        kind.listed or (ChangeKind.SLOWER if delta > 0 else ChangeKind.FASTER),
        signature.op,
        operands_text(signature),
        len(group),
        delta * unit_ns,
        kind.causes,
        sum(change.moved for change in group),
        calling_shape(signature, attributes),
        before * unit_ns,
        kind.name,
        kind.beside,
        within_noise,
    )


def _part_order(part: Part) -> tuple[object, ...]:
    causes = [str(cause) for cause in part.causes]
    names = (part.op, part.name, part.beside, part.signature)
    return (-abs(part.delta_ns), part.change.value, *names, causes)
