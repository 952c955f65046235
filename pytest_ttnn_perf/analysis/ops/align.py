"""The change between two op tables, attributed to ops."""

from __future__ import annotations

import math
from collections import Counter, defaultdict, deque
from enum import Enum
from functools import cache, lru_cache
from itertools import chain, compress, pairwise, repeat
from math import prod
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
from pytest_ttnn_perf.analysis.ops.regions import Lane, lanes_of, middle_lanes
from pytest_ttnn_perf.core.finding import Basis
from pytest_ttnn_perf.core.ops import Columns, OpGroup, OpGroups, OpTable, short_code

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    from pytest_ttnn_perf.core.ops import Signature, Tensor

    Difference = tuple[str, str | None, str | None]
    from collections.abc import Iterable, Mapping, Sequence

    Likeness = tuple[Signature, int | None, str | None, str]
    from collections.abc import Callable

    from pytest_ttnn_perf.analysis.ops.regions import Region
    from pytest_ttnn_perf.core.ops import Signature


# The change of a time, attributed to ops.


class ChangeKind(Enum):
    """What became of a group of ops."""

    SLOWER = "slower"
    FASTER = "faster"
    ADDED = "added"
    REMOVED = "removed"


class Cause(Struct, frozen=True):
    """A difference between matched ops that may explain their times, e.g. cores 64 → 32."""

    what: str
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.what} {self.before} → {self.after}"


class Part(Struct, frozen=True):
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


class Attribution(Struct, frozen=True):
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


class Unmatched(Struct, frozen=True):
    """A region that only one of two captures has, and the time of a step of it."""

    side: str
    region: str
    step_ns: float


class CaptureComparison(Struct, frozen=True):
    """Two captures, region by region; ``notes`` say what is particular about them."""

    regions: tuple[Attribution, ...]
    unmatched: tuple[Unmatched, ...] = ()
    notes: tuple[str, ...] = ()


# The ops of two tables by number, so that sequences of thousands compare as integers.

#: Codes that TTNN renamed; the op is the same. Until 2025 a convolution was OptimizedConvNew.
_RENAMED: Final = {"OptimizedConvNew": "Conv2d"}


class Variant(NamedTuple):
    """An op with everything that may explain its time."""

    signature: Signature
    cores: int | None
    fidelity: str | None
    attributes: str


class CatalogueLikeness(Struct, frozen=True):
    """In what variants can be alike: for each variant a number; equal ones are alike in that.

    ``code``: what it computes. ``exact``: that and its operands. ``padded``, ``logical``: that and
    those shapes of all operands. ``ends``: that and the padded shapes of the first input and the
    first output. ``format``: whatever is told of the operands but sizes and memory.
    """

    exact: list[int] = []
    padded: list[int] = []
    logical: list[int] = []
    ends: list[int] = []
    code: list[int] = []
    format: list[int] = []


class _Numbered(dict[tuple[int, int | None, int, int], int]):
    """The number of a row's variant by what its table holds of it."""

    def __init__(self, table: OpTable, catalogue: Catalogue) -> None:
        super().__init__()
        self._table = table
        self._catalogue = catalogue

    def __missing__(self, key: tuple[int, int | None, int, int]) -> int:
        number = self[key] = self._catalogue.number_of(_variant(self._table, *key))
        return number


class Catalogue:
    """Numbers the variants of two tables, in the order they are met."""

    def __init__(self) -> None:
        self.variants: list[Variant] = []
        self.alike = CatalogueLikeness()
        self._numbers: dict[Variant, int] = {}
        self._traits: dict[Hashable, int] = {}

    def numbered(self, table: OpTable) -> list[int]:
        """Return the variants of a table's rows, by number."""
        c = table.columns
        keys = zip(c.signature, c.cores, c.fidelity, c.attributes, strict=True)
        return list(map(_Numbered(table, self).__getitem__, keys))

    def number_of(self, variant: Variant) -> int:
        """Return the number of a variant."""
        number = self._numbers.setdefault(variant, len(self.variants))
        if number == len(self.variants):
            self.variants.append(variant)
            self._add_likeness(variant)
        return number

    def _add_likeness(self, variant: Variant) -> None:
        code, alike = _code(variant), self.alike
        inputs, outputs = variant.signature.inputs, variant.signature.outputs
        padded = code, _padded(inputs), _padded(outputs)
        alike.code.append(self._same(code))
        alike.exact.append(self._same((code, inputs, outputs)))
        alike.padded.append(self._same(padded))
        alike.logical.append(self._same((code, _logical(inputs), _logical(outputs))))
        alike.ends.append(self._same((code, padded[1][:1], padded[2][:1])))
        alike.format.append(self._same((_formats(inputs), _formats(outputs))))

    def _same(self, trait: Hashable) -> int:
        """Return the number that stands for a trait."""
        return self._traits.setdefault(trait, len(self._traits))


def _variant(
    table: OpTable, signature: int, cores: int | None, fidelity: int, attributes: int
) -> Variant:
    return Variant(
        table.signatures[signature],
        cores,
        None if fidelity < 0 else table.fidelities[fidelity],
        "" if attributes < 0 else table.attribute_texts[attributes],
    )


def _code(variant: Variant) -> str:
    """Return what an op computes, without what differs between releases."""
    code = _plain_code(variant.signature.op)
    return code + function_in(variant.attributes) if code.startswith(ELEMENTWISE) else code


@lru_cache(maxsize=1024)
def _plain_code(op: str) -> str:
    short = short_code(op)
    return _RENAMED.get(short, short)


def _padded(tensors: tuple[Tensor, ...]) -> tuple[tuple[int, ...], ...]:
    return tuple([tensor.padded for tensor in tensors])


def _logical(tensors: tuple[Tensor, ...]) -> tuple[tuple[int, ...], ...]:
    return tuple([tensor.logical or tensor.padded for tensor in tensors])


def _formats(tensors: tuple[Tensor, ...]) -> tuple[tuple[str, str, int], ...]:
    return tuple([(tensor.dtype, tensor.layout, len(tensor.padded)) for tensor in tensors])


# Why an op takes another time than its counterpart: what is set up otherwise, costly first.

#: What usually costs most stands first: another amount of work, then where it runs and where its
#: operands lie, then their formats, then how it is cut. Of equals the order of telling stays.
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
#: what a capture counts as cores says nothing of it.
_FROM_BANKS: Final = "DRAMSharded"


def causes_between(before: Variant, after: Variant) -> tuple[Cause, ...]:
    """Return the differences, what usually costs most first.

    What one side does not tell is no difference: older captures, and baselines that were written by
    an older version, tell less.
    """
    found = [
        Cause(what, then, now)
        for what, then, now in _both(before, after)
        if then and now and now != then
    ]
    if len(found) > 1:
        banks = any(_FROM_BANKS in each.attributes for each in (before, after))
        found.sort(key=lambda cause: _causes_rank(cause.what, banks=banks))
    return tuple(found)


def _causes_rank(what: str, *, banks: bool) -> int:
    if banks and what == "cores":
        return _LAST
    return _RANKS.get(what.rpartition(" ")[2] if what[:2] in {"in", "ou"} else what, _LAST)


def _both(before: Variant, after: Variant) -> Iterator[Difference]:
    """Yield what may differ: its name, and its value before and after."""
    yield "cores", str(before.cores or ""), str(after.cores or "")
    yield "fidelity", before.fidelity, after.fidelity
    if before.signature != after.signature:
        ours, theirs = before.signature, after.signature
        yield from _operands("in", ours.inputs, theirs.inputs)
        yield from _operands("out", ours.outputs, theirs.outputs)
    if before.attributes != after.attributes:
        yield from _settings(
            dict(settings_in(before.attributes)), dict(settings_in(after.attributes))
        )


def _settings(then: dict[str, str], now: dict[str, str]) -> Iterator[Difference]:
    yield from _shards(then, now)
    for key, value in then.items():
        if key not in {SHARD_GRID, SHARD_SHAPE, SHARD_ORDER}:
            yield key, value, now.get(key)


def _shards(then: dict[str, str], now: dict[str, str]) -> Iterator[Difference]:
    """Yield in what the shards of the output differ; grids of as many cores only if they do."""
    grids = then.get(SHARD_GRID, ""), now.get(SHARD_GRID, "")
    if all(map(is_grid, grids)):
        before, after = map(cores_of, grids)
        yield "shard cores", str(before), str(after)
        if before == after:
            yield "shard grid", *grids
    yield "shard shape", then.get(SHARD_SHAPE), now.get(SHARD_SHAPE)
    yield "shard orientation", then.get(SHARD_ORDER), now.get(SHARD_ORDER)


def _operands(
    side: str, before: tuple[Tensor, ...], after: tuple[Tensor, ...]
) -> Iterator[Difference]:
    """Yield in what operands differ, the largest first: it takes longest to read or to write."""
    if len(before) != len(after):
        yield f"{side}puts", str(len(before)), str(len(after))
    pairs = list(enumerate(zip(before, after, strict=False)))
    pairs.sort(key=lambda pair: -max(prod(tensor.padded) for tensor in pair[1]))
    for place, (then, now) in pairs:
        if then != now:
            name = f"{side}{place}"
            yield f"{name} dtype", then.dtype, now.dtype
            yield f"{name} memory", then.memory, now.memory
            yield f"{name} layout", then.layout, now.layout
            yield f"{name} shape", *_shapes(then, now)


def _shapes(before: Tensor, after: Tensor) -> tuple[str, str]:
    """Return logical shapes where both sides tell them; padding follows from the layout."""
    if before.logical is None or after.logical is None:
        return shape_text(before.padded), shape_text(after.padded)
    return shape_text(before.logical), shape_text(after.logical)


# Groups of like ops, as baselines store them, and the change between two such tables.

#: Ops of one name are of different kinds where one takes less than this part of the next longer.
_APART: Final = 0.8
#: How much of a stored time its digits leave open.
_ROUNDING: Final = 1e-6
#: Means over devices are kept to the picosecond.
_DECIMALS: Final = 3


def group_ops(table: OpTable, chosen: Sequence[Lane] | None = None) -> OpGroups:
    """Gather the ops of a table that have the same signature and are set up alike.

    If lanes of devices are ``chosen``, only their ops, and the mean of what they take. What fell
    back to the host is beside them, unless they are of a trace, which has no such ops.
    """
    on_devices, on_host = lanes_of(table)
    if chosen is not None:
        on_devices, on_host = _folded(table, chosen), Lane() if table.traces else on_host
    lanes = (*on_devices, on_host)
    groups: dict[Likeness, list[list[float]]] = defaultdict(lambda: [[] for _ in lanes])
    for place, lane in enumerate(lanes):
        for likeness, kernel_ns in zip(_likenesses(table, lane), lane.kernel_ns, strict=True):
            groups[likeness][place].append(kernel_ns)
    found = [
        OpGroup(
            *likeness,
            count=max(map(len, times)),
            total_ns=round(sum(chain.from_iterable(times)) / len(on_devices), _DECIMALS),
            median_ns=round(median(chain.from_iterable(times)), _DECIMALS),
        )
        for likeness, of_lanes in groups.items()
        for times in (
            [of_lanes] if likeness[0].inputs or likeness[0].outputs else _by_time(of_lanes)
        )
    ]
    return OpGroups(table.kernel_time, tuple(sorted(found, key=_place)))


def _folded(table: OpTable, lanes: Sequence[Lane]) -> tuple[Lane, ...]:
    """Return one lane of mean times for lanes that run one program, op by op.

    A collective has fewer cores at the end of a line than in its middle, and shapes may differ from
    device to device: told apart, that would be twice as many ops that take half the time each.
    """
    codes = [table.signatures[number].op for number in table.columns.signature]
    if len({tuple(codes[row] for row in lane.rows) for lane in lanes}) != 1:
        return tuple(lanes)
    places = zip(*(lane.kernel_ns for lane in lanes), strict=True)
    return (Lane(lanes[0].rows, [sum(place) / len(lanes) for place in places]),)


def attribute_groups(before: OpGroups, after: OpGroups) -> Attribution | None:
    """Attribute the change between two tables of which only the groups are known.

    The order of the ops is not: what moved cannot be told, and an op has the mean time of its
    group. Times of different columns are different quantities: there is nothing to say of them.
    """
    if before.kernel_time != after.kernel_time:
        return None
    return attribute(_expand_groups(before), _expand_groups(after))


def attribute_regions(
    before: OpGroups, after: OpGroups, times_ns: Mapping[str, tuple[float, float]]
) -> Iterator[tuple[str, Attribution | None]]:
    """Yield the change of each region that both tables have, by op; None for what has no answer.

    The tables are of one session each, and ``times_ns``, then and now, may be of several: what
    these differ by besides is left to the other ops.
    """
    for region, (then, now) in times_ns.items():
        if region not in before.regions or region not in after.regions:
            continue
        attribution = attribute_groups(before.of(region), after.of(region))
        if attribution is not None and abs(now - then - attribution.delta_ns) > _ROUNDING * then:
            told = sum(part.delta_ns for part in attribution.parts)
            attribution = replace(
                attribution, before_ns=then, after_ns=now, unexplained_ns=(now - then) - told
            )
        yield region, attribution


def _likenesses(table: OpTable, lane: Lane) -> Iterable[Likeness]:
    c = table.columns
    for row in lane.rows:
        fidelity, attributes = c.fidelity[row], c.attributes[row]
        yield (
            table.signatures[c.signature[row]],
            c.cores[row],
            None if fidelity < 0 else table.fidelities[fidelity],
            "" if attributes < 0 else condense_settings(table.attribute_texts[attributes]),
        )


def _by_time(of_lanes: list[list[float]]) -> Iterable[list[list[float]]]:
    """Tell ops apart that have only a name, by how long they take: a large matmul from a small."""
    ordered = sorted(chain.from_iterable(of_lanes), reverse=True)
    steps = [now for then, now in pairwise(ordered) if now < _APART * then]
    bounds = [math.inf, *(math.nextafter(step, math.inf) for step in steps), -math.inf]
    for above, below in pairwise(bounds):
        yield [[ns for ns in times if below <= ns < above] for times in of_lanes]


def _place(group: OpGroup) -> tuple[object, ...]:
    """Order by what the op is; of what cannot be told apart by that, the longest first."""
    signature = group.signature
    shapes = [tensor.padded for tensor in (*signature.inputs, *signature.outputs)]
    setup = (group.settings, str(group.cores), str(group.fidelity))
    return signature.op, shapes, repr(signature), -group.median_ns, setup


def _expand_groups(ops: OpGroups) -> OpTable:
    """Return a table with each op of the groups, on one device."""
    groups = ops.groups
    rows = [place for place, group in enumerate(groups) for _ in range(group.count)]
    fidelities = list(Counter(group.fidelity for group in groups if group.fidelity is not None))
    numbers = {fidelity: number for number, fidelity in enumerate(fidelities)}
    unknown = list(repeat(None, len(rows)))
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


# Which op of one sequence stands for which op of another.

#: How many items of each side are searched at once: up to so many, the result is the longest there
#: is. The time per item grows with it, and memory with its square: 3 MB here.
_WINDOW: Final = 4096
Pairs = list[tuple[int, int]]


def common_subsequence(a: Sequence[int], b: Sequence[int]) -> Pairs:
    """Return the indices of equal items, ascending in both; the most there are, or nearly so.

    >>> common_subsequence([1, 2, 3, 4], [1, 3, 5, 4])
    [(0, 0), (2, 1), (3, 3)]
    """
    our_kinds, their_kinds = set(a), set(b)
    if our_kinds == their_kinds:
        return _pairs(a, b)
    shared = our_kinds & their_kinds
    if not shared:
        return []
    # An item that the other side lacks cannot be paired, but would take time.
    ours = [i for i, item in enumerate(a) if item in shared]
    theirs = [j for j, item in enumerate(b) if item in shared]
    found = _pairs([a[i] for i in ours], [b[j] for j in theirs])
    return [(ours[i], theirs[j]) for i, j in found]


def _pairs(a: Sequence[int], b: Sequence[int]) -> Pairs:
    """Pair the common beginning, what is common between, and the common end."""
    head = _common(a, b)
    tail = _common(a[: head - len(a) - 1 : -1], b[: head - len(b) - 1 : -1])
    pairs = list(zip(range(head), range(head), strict=True))
    for found in _search_windows(a[: len(a) - tail], b[: len(b) - tail], head):
        pairs += found
    pairs += zip(range(len(a) - tail, len(a)), range(len(b) - tail, len(b)), strict=True)
    return pairs


def _common(a: Sequence[int], b: Sequence[int]) -> int:
    """Return how many items two sequences have in common before they first differ."""
    return next((i for i, differ in enumerate(map(ne, a, b)) if differ), min(len(a), len(b)))


def _search_windows(a: Sequence[int], b: Sequence[int], start: int) -> Iterator[Pairs]:
    """Yield the pairs of each window; the next begins where the last one's are cut off."""
    x = y = start
    while x < len(a) and y < len(b):
        fits = max(len(a) - x, len(b) - y) <= _WINDOW
        rows = _rows(a[x:] if fits else a[x : x + _WINDOW // 2], b[y : y + _WINDOW])
        cut = rows[0].bit_length() if fits else _best_cut(rows)
        yield _trace_back(rows, cut, x, y)
        x, y = x + len(rows) - 1, y + cut


def _rows(a: Sequence[int], b: Sequence[int]) -> list[int]:
    """Return the rows of the table, first that before any item of ``a``.

    In each, for the items of ``a`` up to one, bit j is clear where a longer common subsequence ends
    with ``b[j]`` than anywhere before.
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


def _best_cut(rows: Sequence[int]) -> int:
    """Return how many items of ``b`` best go with those of ``a``, if both go on.

    Each item of ``b`` should pay: bring about as many pairs more as one on the diagonal does. For
    sequences that are alike, that is where the fewest edits lead.
    """
    across = len(rows) - 1
    ends = f"{rows[-1]:0{rows[0].bit_length()}b}"[::-1]  # a digit per item of b
    price = ends.count("0", 0, across) / (2 * across)
    best = worth = 0.0
    cut = 0
    for j, digit in enumerate(ends, start=1):
        worth += (digit == "0") - price
        if worth > best:
            best, cut = worth, j
    return cut


def _trace_back(rows: Sequence[int], cut: int, x: int, y: int) -> Pairs:
    """Return a longest common subsequence of all items of ``a`` and the first ones of ``b``.

    ``x`` and ``y`` is where the window begins.
    """
    pairs: Pairs = []
    lower = (1 << cut) - 1
    j = (rows[-1] & lower ^ lower).bit_length() - 1  # the last bit that is clear
    for i in range(len(rows) - 2, -1, -1):
        if j < 0:
            break
        if rows[i] >> j & 1:  # without this item, nothing longer ends there: so it is one of them
            pairs.append((x + i, y + j))
            lower = (1 << j) - 1
            j = (rows[i] & lower ^ lower).bit_length() - 1
    pairs.reverse()
    return pairs


#: Stands for no match.
NONE: Final = -1


def slide(to: list[int], a: Sequence[int], b: Sequence[int], catalogue: Catalogue) -> None:
    """Slide each run without a match to where the matches beside it agree best.

    ``to`` has the place in ``b`` that each of ``a`` is matched with, by padded shapes. Where x and
    x' are alike in those, "x went, before x'" and "x' went, after x" are as good as each other. The
    better one is that which leaves the op that did not change otherwise.
    """
    run = next_run(to, 0)
    while run:
        shift = _slide_run(to, run, a, b, catalogue=catalogue)
        run = next_run(to, run[1] + shift + 1)


def next_run(to: Sequence[int], start: int) -> tuple[int, int] | None:
    """Return where the next run without a match begins and ends, from a place on."""
    try:
        start = to.index(NONE, start)
    except ValueError:
        return None
    matched = (place for place in range(start, len(to)) if to[place] != NONE)
    return start, next(matched, len(to))


def _slide_run(
    to: list[int],
    run: tuple[int, int],
    a: Sequence[int],
    b: Sequence[int],
    *,
    catalogue: Catalogue,
) -> int:
    """Slide one run; return by how much, negative to the left."""
    padded = catalogue.alike.padded
    best_gain = best_shift = 0
    for step in (-1, 1):
        gain = shift = 0
        for source, target in _slides(to, run, step):
            if padded[a[source]] != padded[a[target]]:
                break
            shift += step
            gain += _agreement(a[target], b[to[source]], catalogue)
            gain -= _agreement(a[source], b[to[source]], catalogue)
            if gain > best_gain:
                best_gain, best_shift = gain, shift
    if best_shift:
        way = 1 if best_shift > 0 else -1
        for source, target in list(_slides(to, run, way))[: abs(best_shift)]:
            to[target], to[source] = to[source], NONE
    return best_shift


def _slides(to: Sequence[int], run: tuple[int, int], step: int) -> Iterator[tuple[int, int]]:
    """Yield the matched ops beside a run, outwards, each with the place it would slide to."""
    start, end = run
    source = end if step > 0 else start - 1
    while 0 <= source < len(to) and to[source] != NONE:
        yield source, source - step * (end - start)
        source += step


def _agreement(ours: int, theirs: int, catalogue: Catalogue) -> int:
    if ours == theirs:
        return 2
    exact = catalogue.alike.exact
    return 1 if exact[ours] == exact[theirs] else 0


class Matches(NamedTuple):
    """For each op before, the place of the op after that stands for it, or NONE.

    ``moved`` has those, by their places, that ``to`` leaves out as they do not keep the order.
    """

    to: list[int]
    moved: dict[int, int]


def match(before: Sequence[int], after: Sequence[int], catalogue: Catalogue) -> Matches:
    """Match two sequences of variants; what is in no match was removed or added.

    An op is the same where code and padded shapes are and the order of ops is kept: whatever else
    differs is a cause. Between such matches, equal logical shapes are enough (another layout pads
    otherwise), then equal shapes of what goes in and comes out first (an operand more). Of what is
    left, ops with the very same operands have moved; and between the matches, shapes may differ in
    one dimension (another batch or length).

    Both directions give the same matches: a search that starts from the other side may settle a tie
    in another way, so the two sequences are always searched in the same order.
    """
    if _in_order(before, after, catalogue):
        return _match_in_order(before, after, catalogue)
    to, moved = _match_in_order(after, before, catalogue)
    return Matches(_inverted(to, len(before)), {ours: theirs for theirs, ours in moved.items()})


def _in_order(before: Sequence[int], after: Sequence[int], catalogue: Catalogue) -> bool:
    variants = catalogue.variants
    for ours, theirs in zip(before, after, strict=False):
        if ours != theirs:
            return repr(variants[ours]) < repr(variants[theirs])
    return len(before) <= len(after)


def _match_in_order(a: Sequence[int], b: Sequence[int], catalogue: Catalogue) -> Matches:
    alike = catalogue.alike
    to = [NONE] * len(a)
    _fill(to, a, b, alike.padded)
    if NONE not in to and len(a) == len(b):
        return Matches(to, {})
    slide(to, a, b, catalogue)
    back = _inverted(to, len(b))
    slide(back, b, a, catalogue)
    to = _inverted(back, len(a))
    kinds = set(a), set(b)
    for way in (alike.logical, alike.ends):
        if _share(*kinds, way):
            _fill(to, a, b, way)
    moved = _find_moved(to, a, b, alike.exact) if _share(*kinds, alike.exact) else {}
    _fill_resized(to, moved, a, b, catalogue=catalogue)
    return Matches(to, moved)


def _inverted(to: Sequence[int], length: int) -> list[int]:
    back = [NONE] * length
    for i, j in enumerate(to):
        if j != NONE:
            back[j] = i
    return back


def _fill(to: list[int], a: Sequence[int], b: Sequence[int], alike: Sequence[int]) -> None:
    """Match what is alike in another way between two matches."""
    run = next_run(to, 0)
    while run:
        start, end = run
        other = to[start - 1] + 1 if start else 0
        other_end = to[end] if end < len(to) else len(b)
        if other < other_end:
            ours = [alike[variant] for variant in a[start:end]]
            theirs = [alike[variant] for variant in b[other:other_end]]
            for x, y in common_subsequence(ours, theirs):
                to[start + x] = other + y
        run = next_run(to, end)


def _share(ours: set[int], theirs: set[int], alike: Sequence[int]) -> bool:
    """Return whether any variants are alike; they are few, so that is known at once."""
    numbers = {alike[variant] for variant in ours}
    return not numbers.isdisjoint(alike[variant] for variant in theirs)


def _find_moved(
    to: Sequence[int], a: Sequence[int], b: Sequence[int], alike: Sequence[int]
) -> dict[int, int]:
    """Match what is left and alike, whatever its place, in the order of its places."""
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
    *,
    catalogue: Catalogue,
) -> None:
    """Match what is left between two matches and differs in one dimension."""
    ours, theirs, filled = list(a), list(b), to.copy()
    for i, j in moved.items():
        ours[i], theirs[j] = -1, -2  # the last two numbers: like nothing
    _fill(filled, ours, theirs, [*catalogue.alike.code, -1, -2])
    variants, formats = catalogue.variants, catalogue.alike.format
    for i, j in enumerate(filled):
        if (
            to[i] != j
            and formats[a[i]] == formats[b[j]]
            and _nearly(variants[a[i]].signature, variants[b[j]].signature)
        ):
            to[i] = j


def _nearly(ours: Signature, theirs: Signature) -> bool:
    """Return whether operands of the same formats differ in one dimension each."""
    pairs = zip(ours.inputs + ours.outputs, theirs.inputs + theirs.outputs, strict=True)
    return all(sum(map(ne, then.padded, now.padded)) <= 1 for then, now in pairs)


class Strand(NamedTuple):
    """The ops of a device: the number of each one's variant, and its time in whole units."""

    variants: tuple[int, ...]
    units: Sequence[int]


class Pairing(NamedTuple):
    """Devices that ran alike, before and after; their units are sums, each device by its weight."""

    before: Strand
    after: Strand
    weight: int


def pair_strands(before: Sequence[Strand], after: Sequence[Strand]) -> tuple[list[Pairing], int]:
    """Pair devices by their order; return the pairings and the sum of their weights.

    As many after as before are paired one to one. Otherwise each side is cut into equal shares of
    one whole, and a device is paired with those whose shares lie over its own, by how much they
    do: so that both sides keep the mean over their devices.
    """
    whole = math.lcm(len(before), len(after))
    alike: dict[tuple[tuple[int, ...], tuple[int, ...]], list[Pairing]] = {}
    for i, j, weight in _shares(len(before), len(after)):
        pairing = Pairing(before[i], after[j], weight)
        key = (pairing.before.variants, pairing.after.variants)
        alike.setdefault(key, []).append(pairing)
    return [_merge_pairings(pairings) for pairings in alike.values()], whole


def _shares(n: int, m: int) -> Iterator[tuple[int, int, int]]:
    """Yield which of n shares of a whole lies over which of m shares, and by how much.

    >>> list(_shares(2, 3))
    [(0, 0, 2), (0, 1, 1), (1, 1, 1), (1, 2, 2)]
    """
    whole = math.lcm(n, m)
    start = 0
    while start < whole:
        i, j = start * n // whole, start * m // whole
        end = min((i + 1) * whole // n, (j + 1) * whole // m)
        yield i, j, end - start
        start = end


def _merge_pairings(pairings: Sequence[Pairing]) -> Pairing:
    first = pairings[0]
    weights = [pairing.weight for pairing in pairings]
    return Pairing(
        Strand(first.before.variants, _sum_columns([p.before.units for p in pairings], weights)),
        Strand(first.after.variants, _sum_columns([p.after.units for p in pairings], weights)),
        sum(weights),
    )


def _sum_columns(columns: Sequence[Sequence[int]], weights: Sequence[int]) -> Sequence[int]:
    if weights == [1]:
        return columns[0]
    return [
        sum(weight * units for weight, units in zip(weights, place, strict=True))
        for place in zip(*columns, strict=True)
    ]


#: Between two replays of one trace (768 pairs of ops in seven captures of Blackhole chips) an op
#: differs by 0.9 % in the median, and by less than this sum in 96 of 100 cases, whether it takes
#: 1 µs or 1 ms. To ask for less than both 2 % and 1 µs would call 30 of 100 changed. The fraction
#: is also the gate's floor.
NOISE_FRACTION: Final = 0.02
NOISE_NS: Final = 250.0
#: Where most ops keep still, less than that is noise: so many times what the middle op changed by.
#: In those captures, one op in a hundred changed by more than 10 to 20 times as much.
_MEDIANS: Final = 10.0


class Noise(Struct, frozen=True):
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


class Kind(Struct, eq=False):
    """What changes alike have in common; equal only to itself, so that it is found quickly.

    ``listed`` tells that the op came or went. ``variant`` is that of after, if there is one;
    ``name`` what people call it, ``beside`` between which ops it stands.
    """

    variant: Variant
    name: str
    beside: str
    listed: ChangeKind | None = None
    causes: tuple[Cause, ...] = ()


class Batch(NamedTuple):
    """What became of ops of one kind on the devices of one ``lane``, which run alike.

    The units of an op are the sum over those devices; ``unit_ns`` makes them the time per device.
    Ops that came have none before, those that went none after.
    """

    kind: Kind
    before_units: Sequence[int]
    after_units: Sequence[int]
    unit_ns: float
    lane: int
    moved: bool = False

    @property
    def ops(self) -> int:
        """How many ops these are."""
        return len(self.before_units) or len(self.after_units)

    @property
    def times_ns(self) -> list[tuple[float, float]]:
        """The time of each op before and after, per device, if they have both."""
        unit_ns = self.unit_ns
        units = zip(self.before_units, self.after_units, strict=True)
        return [(before * unit_ns, after * unit_ns) for before, after in units]

    def where(self, chosen: Sequence[bool]) -> Batch:
        """Return the ops that are chosen, if they have both times."""
        before, after = compress(self.before_units, chosen), compress(self.after_units, chosen)
        return self._replace(before_units=list(before), after_units=list(after))


class Group(Struct):
    """Ops that changed alike."""

    kind: Kind
    before_units: int = 0
    after_units: int = 0
    counts: dict[int, int] = {}
    moves: dict[int, int] = {}

    def add(self, batch: Batch) -> None:
        """Add ops."""
        self.before_units += sum(batch.before_units)
        self.after_units += sum(batch.after_units)
        ops, lane = batch.ops, batch.lane
        self.counts[lane] = self.counts.get(lane, 0) + ops
        self.moves[lane] = self.moves.get(lane, 0) + (ops if batch.moved else 0)

    @property
    def change(self) -> ChangeKind:
        """What became of them."""
        by_time = ChangeKind.SLOWER if self.delta_units > 0 else ChangeKind.FASTER
        return self.kind.listed or by_time

    @property
    def delta_units(self) -> int:
        """By how much they changed."""
        return self.after_units - self.before_units

    @property
    def count(self) -> int:
        """How many there are on a device, where they are most."""
        return max(self.counts.values())


def changed_groups(batches: Iterable[Batch], *, unit_ns: float) -> list[Group]:
    """Return the groups that changed by more than noise; ``unit_ns`` is a unit's mean per device.

    Ops that came or went always did. Ops with a cause are judged together: what is set up alike
    changes alike. Ops without one are judged each for itself: one of many may be the culprit.
    """
    listed: list[Batch] = []
    caused: list[Batch] = []
    bare: list[Batch] = []
    for batch in batches:
        matched = caused if batch.kind.causes else bare
        (listed if batch.kind.listed else matched).append(batch)
    noise = Noise.between([times for batch in bare for times in batch.times_ns])
    return [
        *_group_batches(listed).values(),
        *(
            group
            for group in _group_batches(caused).values()
            if not _is_noise([group], noise, unit_ns=unit_ns)
        ),
        *_culprits(bare, noise, unit_ns=unit_ns),
    ]


def _culprits(batches: Iterable[Batch], noise: Noise, *, unit_ns: float) -> Iterator[Group]:
    """Yield the ops that got slower or faster by themselves.

    Where some of a kind got slower and others faster, and it comes to nothing, that is noise.
    """
    ways: dict[int, list[Batch]] = {1: [], -1: [], 0: []}
    for batch in batches:
        went = noise.ways(batch.times_ns)
        for way in set(went):
            ways[way].append(batch.where([each == way for each in went]))
    slower, faster, still = (_group_batches(group) for group in ways.values())
    for kind in {**slower, **faster}:
        every = [groups[kind] for groups in (slower, faster, still) if kind in groups]
        both_ways = kind in slower and kind in faster
        if not (both_ways and _is_noise(every, noise, unit_ns=unit_ns)):
            yield from (groups[kind] for groups in (slower, faster) if kind in groups)


def _is_noise(groups: Sequence[Group], noise: Noise, *, unit_ns: float) -> bool:
    before = sum(group.before_units for group in groups) * unit_ns
    after = sum(group.after_units for group in groups) * unit_ns
    return noise.covers(before, after, count=sum(group.count for group in groups))


def _group_batches(batches: Iterable[Batch]) -> dict[Kind, Group]:
    groups: dict[Kind, Group] = {}
    for batch in batches:
        group = groups.get(batch.kind)
        if group is None:
            group = groups[batch.kind] = Group(batch.kind)
        group.add(batch)
    return groups


class Fates:
    """Tells what became of the ops of pairings; like changes are of the same kind.

    In strands that are not ``ordered`` no op stands beside another.
    """

    def __init__(self, catalogue: Catalogue, *, ordered: bool) -> None:
        self._catalogue = catalogue
        self._ordered = ordered
        self._kinds: dict[object, Kind] = {}

    def of(self, pairing: Pairing, *, lane: int, unit_ns: float) -> Iterator[Batch]:
        """Yield what became of all ops; ``unit_ns`` is what a unit is on one device."""
        per_device_ns = unit_ns / pairing.weight
        before, after = pairing.before, pairing.after
        to, moved = match(before.variants, after.variants, self._catalogue)
        kept = {i: j for i, j in enumerate(to) if j != NONE}
        for places in (kept, moved):
            for kind, ours, theirs in self._changed(pairing, places):
                yield Batch(kind, ours, theirs, per_device_ns, lane, moved=places is moved)
        gone = set(range(len(before.variants))).difference(kept, moved)
        come = set(range(len(after.variants))).difference(kept.values(), moved.values())
        for kind, units in self._listed(before, gone, ChangeKind.REMOVED):
            yield Batch(kind, units, (), per_device_ns, lane)
        for kind, units in self._listed(after, come, ChangeKind.ADDED):
            yield Batch(kind, (), units, per_device_ns, lane)

    def _changed(
        self, pairing: Pairing, places: Mapping[int, int]
    ) -> Iterator[tuple[Kind, Sequence[int], Sequence[int]]]:
        """Yield the kinds of matched ops, with their times before and after."""
        before, after = pairing.before, pairing.after
        by_variants: defaultdict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
        for i, j in places.items():
            variants = (before.variants[i], after.variants[j])
            by_variants[variants].append((before.units[i], after.units[j]))
        for (one, other), units in by_variants.items():
            ours, theirs = self._catalogue.variants[one], self._catalogue.variants[other]
            causes = causes_between(ours, theirs)
            kind = self._kind(theirs, None, causes, before=ours.signature)
            before_units, after_units = zip(*units, strict=True)
            yield kind, before_units, after_units

    def _kind(
        self,
        variant: Variant,
        listed: ChangeKind | None,
        causes: tuple[Cause, ...],
        *,
        before: Signature | None = None,
        beside: str = "",
    ) -> Kind:
        """Return the kind that all changes like this one share."""
        name = op_name(variant.signature, variant.attributes)
        key = (before, variant.signature, name, beside, listed, causes)
        return self._kinds.setdefault(key, Kind(variant, name, beside, listed, causes))

    def _listed(
        self, strand: Strand, places: Iterable[int], change: ChangeKind
    ) -> Iterator[tuple[Kind, list[int]]]:
        """Yield the kinds of ops without a match, with their times.

        The cause is how many of an op there are on its side, and how many of them have a match.
        """
        by_variant: defaultdict[int, list[int]] = defaultdict(list)
        variants, units_of = strand
        for place in places:
            by_variant[variants[place]].append(place)
        if not by_variant:
            return
        exact = self._catalogue.alike.exact
        present = Counter(map(exact.__getitem__, variants))
        matched = present.copy()
        for variant, own in by_variant.items():
            matched[exact[variant]] -= len(own)
        for variant, own in by_variant.items():
            counts = str(present[exact[variant]]), str(matched[exact[variant]])
            cause = Cause("count", *(counts if change is ChangeKind.REMOVED else counts[::-1]))
            beside = self._beside(own, variants)
            kind = self._kind(self._catalogue.variants[variant], change, (cause,), beside=beside)
            yield kind, [units_of[place] for place in own]

    def _beside(self, places: Sequence[int], variants: Sequence[int]) -> str:
        """Say between which ops conversions of one kind stand; of other ops, nothing."""
        known = self._catalogue.variants
        if not self._ordered or not is_conversion(known[variants[places[0]]].signature.op):
            return ""

        def name_at(at: int | None) -> str | None:
            if at is None:
                return None
            return op_and_function(known[variants[at]].signature.op, known[variants[at]].attributes)

        def signature_at(at: int) -> Signature:
            return known[variants[at]].signature

        found = (neighbours(place, len(variants), signature_at) for place in sorted(places))
        return between_text(Counter(tuple(map(name_at, pair)) for pair in found))


#: The format of a table of which only groups are known: its ops have no order.
GROUPED: Final = "grouped"
#: Times are counted in units of 2⁻¹⁰ ns, finer than any capture tells them ...
_FINEST: Final = -10
#: ... or in coarser ones, if the sum of all would need more bits than a float adds up exactly.
_EXACT_BITS: Final = 52


def attribute(
    before: OpTable, after: OpTable, regions: tuple[Region, Region] | None = None
) -> Attribution:
    """Attribute the change of the kernel time from one capture to another; times are finite.

    Of ``regions``, the middle step on its slowest device is compared, which is what their times are
    of. Without any, the totals are those of the whole captures: several devices are compared each
    with its counterpart, by ascending number, and then averaged; of a trace, one replay is compared
    with one, each of whose ops takes the median of the complete replays. Ops that fell back to the
    host are compared, but take no kernel time.

    Parts and ``unexplained_ns`` add up to the change exactly, as floats and in any order. Swapping
    the tables negates all of them.
    """
    (our_lanes, our_host), (their_lanes, their_host) = _compared(before, after, regions)
    total_ns = sum(sum(lane.kernel_ns) for lane in (*our_lanes, *their_lanes))
    unit_ns = 2.0 ** max(_FINEST, math.frexp(total_ns)[1] - _EXACT_BITS)
    catalogue = Catalogue()

    def strands(table: OpTable, lanes: Iterable[Lane]) -> list[Strand]:
        variant_of = catalogue.numbered(table).__getitem__
        return [
            Strand(
                tuple(map(variant_of, lane.rows)), [round(ns / unit_ns) for ns in lane.kernel_ns]
            )
            for lane in lanes
        ]

    *ours, our_fallbacks = strands(before, [*our_lanes, our_host])
    *theirs, their_fallbacks = strands(after, [*their_lanes, their_host])
    pairings, whole = pair_strands(ours, theirs)
    fates = Fates(catalogue, ordered=GROUPED not in {before.format, after.format})
    every = [*pairings, Pairing(our_fallbacks, their_fallbacks, whole)]
    batches = [
        batch
        for lane, pairing in enumerate(every)
        for batch in fates.of(pairing, lane=lane, unit_ns=unit_ns)
    ]
    groups = changed_groups(batches, unit_ns=unit_ns / whole)

    def mean_ns(units: int) -> float:
        # To the nearest unit, halves to the even one: so the sign makes no difference.
        nearest, rest = divmod(units, whole)
        return (nearest + (2 * rest + nearest % 2 > whole)) * unit_ns

    before_ns = mean_ns(sum(sum(pairing.before.units) for pairing in pairings))
    after_ns = mean_ns(sum(sum(pairing.after.units) for pairing in pairings))
    parts = sorted(_parts(groups, mean_ns), key=_rank)
    return Attribution(
        before_ns,
        after_ns,
        tuple(parts),
        (after_ns - before_ns) - sum(part.delta_ns for part in parts),
        devices=(len(before.devices) or 1, len(after.devices) or 1),
        replayed=_is_replayed(before, after, regions),
        unexplained_ops=_others(batches, groups),
        region=None if regions is None else regions[1].name,
    )


def _others(batches: Iterable[Batch], groups: Iterable[Group]) -> int:
    """Return how many ops are in no group, on the device where they are most."""
    counts: Counter[int] = Counter()
    for batch in batches:
        counts[batch.lane] += batch.ops
    for group in groups:
        counts.subtract(group.counts)
    return max(counts.values(), default=0)


def _compared(
    before: OpTable, after: OpTable, regions: tuple[Region, Region] | None
) -> list[tuple[tuple[Lane, ...], Lane]]:
    """Return the ops of devices and of the host that are compared, before and after."""
    if regions is None:
        return [lanes_of(before), lanes_of(after)]
    pairs = zip((before, after), regions, strict=True)
    return [(middle_lanes(table, region), Lane()) for table, region in pairs]


def _is_replayed(before: OpTable, after: OpTable, regions: tuple[Region, Region] | None) -> bool:
    if regions is not None:
        return any(region.basis is Basis.REPLAYS for region in regions)
    return any(set(table.columns.replay) - {None} for table in (before, after))


def _parts(groups: Iterable[Group], mean_ns: Callable[[int], float]) -> Iterator[Part]:
    operands_of = cache(operands_text)  # many parts may be of one op
    for group in groups:
        signature, _, _, attributes = group.kind.variant
        yield Part(
            group.change,
            signature.op,
            operands_of(signature),
            group.count,
            mean_ns(group.delta_units),
            group.kind.causes,
            max(group.moves.values()),
            calling_shape(signature, attributes),
            mean_ns(group.before_units),
            group.kind.name,
            group.kind.beside,
        )


def _rank(part: Part) -> tuple[object, ...]:
    """Order by size; what is of the same size by its name, so that the order is always the same."""
    causes = [str(cause) for cause in part.causes]
    return (
        -abs(part.delta_ns),
        part.change.value,
        part.op,
        part.name,
        part.beside,
        part.signature,
        causes,
    )
