"""Times of ops, gaps between them, and the savings of findings."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import accumulate, compress
from math import inf, isfinite, prod
from statistics import median
from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_ttnn_perf.analysis.ops import names
from pytest_ttnn_perf.analysis.ops.names import without_producer
from pytest_ttnn_perf.analysis.ops.regions import (
    COMPILING_NS,
    critical_rows,
    find_layers,
    measured_calls,
    once_per_table,
    rows_by_device,
    signpost_windows,
    step_of,
)
from pytest_ttnn_perf.analysis.ops.roofline import BYTES, board_of
from pytest_ttnn_perf.core.finding import Evidence, Input, Limit
from pytest_ttnn_perf.core.text import counted, duration, percent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from pytest_ttnn_perf.core.finding import Answer, Subject
    from pytest_ttnn_perf.core.ops import Op, OpTable, Signature, Tensor

# Ops, and the time between them: gaps, windows, repeated executions.

#: Evidence names so many ops by their numbers: enough to find them, and to see what they share.
MOST_NUMBERS: Final = 8


@once_per_table
def device_ops(table: OpTable) -> Sequence[Op]:
    """Return the ops that ran on a device."""
    return tuple(op for op in table if not op.host)


@once_per_table
def signature_numbers(table: OpTable) -> Sequence[int]:
    """Return the signature index of each op on a device."""
    rows = zip(table.columns.signature, table.columns.host, strict=True)
    return tuple(number for number, host in rows if not host)


def ops_like(table: OpTable, chosen: Callable[[Signature], bool]) -> Sequence[Op]:
    """Return the ops of a device with some signatures, in their order."""
    numbers = signature_numbers(table)
    # Each signature is asked once: most ops of a table differ only in their numbers.
    wanted = {number for number in set(numbers) if chosen(table.signatures[number])}
    if not wanted:
        return ()  # before an object is made of every row
    return tuple(compress(device_ops(table), map(wanted.__contains__, numbers)))


@once_per_table
def kernel_ns(table: OpTable) -> float:
    """Return the kernel time of all ops of devices."""
    return sum(table.columns.kernel_ns)


def worst_ops(
    ops: Iterable[Op],
    weight: Callable[[Op], float] = lambda op: op.kernel_ns,
    *,
    of: float | None,
    unit: str = "ns",
) -> Iterator[Evidence]:
    """Yield evidence of ops, those of one signature together, the heaviest first."""
    return heaviest(((op_name(op), weight(op), op.number) for op in ops), of=of, unit=unit)


def heaviest(
    weighed: Iterable[tuple[str, float, int]],
    *,
    of: float | None,
    unit: str = "ns",
    least: float = 0.0,
) -> Iterator[Evidence]:
    """Yield evidence by text, heaviest first, from a share of all on.

    Each of ``weighed`` is a text, a weight and the number of an op.
    """
    weights: dict[str, list[tuple[float, int]]] = defaultdict(list)
    for text, weight, number in weighed:
        weights[text].append((weight, number))
    totals = {text: sum(each for each, _ in listed) for text, listed in weights.items()}
    worth = least * sum(totals.values())
    for text in sorted(totals, key=lambda text: (-totals[text], text)):
        if totals[text] < worth:
            break
        listed = weights[text]
        times = f"{len(listed)} x {text}" if len(listed) > 1 else text
        share = totals[text] / of if of else None
        yield Evidence(times, totals[text], unit, share, heaviest_numbers(listed))


def heaviest_numbers(weighed: Iterable[tuple[float, int]]) -> tuple[int, ...]:
    """Return the numbers of the heaviest ops; 0 is no number."""
    ordered = sorted(weighed, key=lambda each: (-each[0], each[1]))
    return tuple(number for _, number in ordered[:MOST_NUMBERS] if number)


def op_name(op: Op) -> str:
    """Return an op as people call it: function and operands."""
    return names.op_name(op.signature, op.attributes)


def has_operands(table: OpTable) -> bool:
    """Return whether a capture has operands; device reports lack them."""
    return any(signature.inputs or signature.outputs for signature in table.signatures)


_NEITHER: Final = (
    "the capture has neither replays of a trace nor a window of signposts (NAME … NAME_END): gaps "
    "of a whole capture are compilation and idle time"
)
#: A host that sends op after op takes less for each, though some gaps may be longer.
_COLD_NS: Final = 2e5
_NO_GAPS: Final = "the capture does not give the gaps between ops"
_INFLATED: Final = "outside a replay the profiler itself makes gaps longer"


class Gaps(NamedTuple):
    """Waiting and working time inside ``executions`` replays, or windows.

    ``waits`` are the rows that were waited for.
    """

    waited_ns: float
    worked_ns: float
    executions: int
    replayed: bool
    waits: tuple[int, ...]

    @property
    def share(self) -> float:
        """The part of the time in which devices waited."""
        whole_ns = self.waited_ns + self.worked_ns
        return self.waited_ns / whole_ns if whole_ns else 0.0

    @property
    def place(self) -> str:
        """Where the gaps were counted, in words."""
        return counted(self.executions, "replay" if self.replayed else "window")

    @property
    def caveat(self) -> str | None:
        """A remark on the number."""
        return None if self.replayed else _INFLATED


def gaps_of(subject: Subject) -> Gaps | str:
    """Return the gaps of a subject, or why they are not known.

    Between phases of a program lie compilation and idle time, so that the gaps of a whole capture
    are nearly all of its time. Counted are gaps inside replays of traces, else inside windows; the
    gap before the first op of each is not inside. A window in which programs were compiled tells
    nothing of a later call.
    """
    return subject.why_absent(Input.OPS) if subject.ops is None else _gaps(subject.ops)


@once_per_table
def _gaps(table: OpTable) -> Gaps | str:
    replays = _replays(table)
    windows = [] if replays else measured_calls(table)
    sequences = list(replays.values())
    for window in windows:
        by_device: dict[int, list[int]] = defaultdict(list)
        for at in range(window.start, window.stop):
            if not table.columns.host[at]:
                by_device[table.columns.device[at]].append(at)
        sequences += by_device.values()
    if not sequences:
        return _NEITHER
    gaps = table.columns.gap_ns
    waits = tuple(at for sequence in sequences for at in sequence[1:] if gaps[at] is not None)
    if not waits and any(len(sequence) > 1 for sequence in sequences):
        return _NO_GAPS
    # A gap below zero is an artefact of the profiler's clocks.
    waited = [max(gaps[at] or 0.0, 0.0) for at in waits]
    compiled = [gap for gap in waited if gap >= COMPILING_NS]
    if not replays and waited and sum(compiled) > sum(waited) / 2:
        return (
            f"{len(compiled)} of {counted(len(waited), 'gap')} are of 1 ms or more: programs were "
            "compiled inside the window; measure a later call"
        )
    if not replays and waited and median(waited) >= _COLD_NS:
        return (
            f"half of {counted(len(waited), 'gap')} are of {median(waited) / 1000:.0f} µs or more: "
            "the window is of a first call; measure a later one"
        )
    return Gaps(
        waited_ns=sum(waited),
        worked_ns=sum(table.columns.kernel_ns[at] for each in sequences for at in each),
        executions=len(windows) or len({key[1:] for key in replays}),
        replayed=bool(replays),
        waits=waits,
    )


def _replays(table: OpTable) -> dict[tuple[int, int, int], list[int]]:
    """Return the rows of replays by device, trace and execution."""
    found: dict[tuple[int, int, int], list[int]] = defaultdict(list)
    columns = table.columns
    rows = zip(columns.device, columns.trace, columns.replay, strict=True)
    for at, (device, trace, replay) in enumerate(rows):
        if trace is not None and replay is not None and not columns.host[at]:
            found[device, trace, replay].append(at)
    return found


class Difference(NamedTuple):
    """An execution unlike the first of its kind, and where it differs."""

    what: str
    number: int
    expected: str
    found: str

    def __str__(self) -> str:
        return f"{self.what} {self.number}: {self.found} instead of {self.expected}"


def executions(table: OpTable) -> dict[str, list[list[int]]]:
    """Return the rows of traces and windows that ran at least twice."""
    found: dict[str, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    columns = table.columns
    for (device, trace, replay), places in _replays(table).items():
        found[f"trace {trace} on device {device}, replay"][replay] = places
    windows = measured_calls(table) if table.calls else signpost_windows(table)
    for number, window in enumerate(windows):
        for at in range(window.start, window.stop):
            if not columns.host[at] and columns.trace[at] is None:
                found[f"{window.name} on device {columns.device[at]}, call"][number].append(at)
    return {what: list(runs.values()) for what, runs in found.items() if len(runs) > 1}


def differences(table: OpTable) -> Iterator[Difference]:
    """Yield the executions that differ from the first of their kind."""
    signature = table.columns.signature
    for what, (first, *others) in executions(table).items():
        expected = [signature[at] for at in first]
        for number, other in enumerate(others, start=2):
            if [signature[at] for at in other] != expected:
                pairs = zip(map(table.op, first), map(table.op, other), strict=False)
                unlike = (pair for pair in pairs if pair[0].signature != pair[1].signature)
                names = next((tuple(map(op_name, pair)) for pair in unlike), None)
                yield Difference(
                    what, number, *(names or (counted(len(run), "op") for run in (first, other)))
                )


# What findings would save of a step.

#: What launching an op takes, however little it has to do: real replays have no shorter ones.
LAUNCH_NS: Final = 2_000.0
#: Why rules ask for that much: less is lost among what two runs of a step differ in.
WORTH: Final = "steps of one capture differ by up to 1 %"
#: What most rules ask for.
SHARE: Final = Limit(0.02, "of a step", WORTH)
#: Evidence of less than this part of a finding is left out.
_TOLD: Final = 0.01
#: Advice for less than this part of what weighs most is left to the page of a rule.
_WORTH_A_WORD: Final = 0.2


class Saving(NamedTuple):
    """The saving of a finding, and the part that it adds.

    ``taken_ns`` is what others have saved of it before, by their code. ``gaps_ns`` is how much of
    what it adds is time between ops.
    """

    saving_ns: float
    adds_ns: float
    taken_ns: Mapping[str, float]
    gaps_ns: float = 0.0


class Claim(NamedTuple):
    """The saving that a finding claims: of ops, and between ops.

    Beside a saving of ops, ``waiting_ns`` are the gaps that go with them. One that counts ``last``
    takes nothing from the others: an upper bound, or what the project does without. One that
    ``compounds`` makes smaller what others leave: smaller weights are read sooner in any layout.
    """

    ops_ns: Mapping[int, float]
    waiting_ns: float = 0.0
    last: bool = False
    compounds: bool = False


def rank_savings(
    claims: Mapping[str, Claim], times_ns: Mapping[int, float], gaps_ns: float = inf
) -> dict[str, Saving]:
    """Return what each claim amounts to, the largest first.

    ``times_ns`` are those of the ops that decide how long the step takes; a claim on another op
    saves nothing, and none saves more than there is. A claim is how short an op can get: several on
    one op are ways to the same end, of which the shortest counts. Time between ops is one stock:
    the claims on it alone are claims on the same, and the gaps of ops that go, of ``gaps_ns`` in
    all, are part of it.

    >>> claims = {"TTP305": Claim({0: 90.0}), "TTP311": Claim({0: 50.0, 1: 10.0})}
    >>> rank_savings(claims, {0: 100.0, 1: 100.0})["TTP311"]
    Saving(saving_ns=60.0, adds_ns=10.0, taken_ns={'TTP305': 50.0}, gaps_ns=0.0)
    """
    bounded = {name: _bounded(claim, times_ns, gaps_ns) for name, claim in claims.items()}
    totals = {name: sum(one.ops_ns.values()) + one.waiting_ns for name, one in bounded.items()}
    saved: dict[int, tuple[float, str]] = {}
    alone_ns = with_ops_ns = 0.0
    gaps_by = ""
    ranked: dict[str, Saving] = {}

    def order(name: str) -> tuple[bool, bool, float, str]:
        claim = bounded[name]
        return claim.last, claim.compounds, -totals[name], name

    for name in sorted(bounded, key=order):
        claim, adds = bounded[name], 0.0
        taken: dict[str, float] = defaultdict(float)
        for row, ns in claim.ops_ns.items():
            already, by = saved.get(row, (0.0, ""))
            new = max(0.0, ns - already)
            if claim.compounds:
                new = ns * (1 - already / times_ns[row])
            adds += new
            if already:
                taken[by] += ns - new
            if new:
                saved[row] = (already + new, name)
        before = max(alone_ns, with_ops_ns)
        if claim.ops_ns:
            new_ops = adds / sum(claim.ops_ns.values())
            with_ops_ns = min(with_ops_ns + claim.waiting_ns * new_ops, gaps_ns)
        else:
            alone_ns = max(alone_ns, claim.waiting_ns)
        between = max(alone_ns, with_ops_ns) - before
        # Where no claim has saved gaps, those of ops go to the one that has saved the ops.
        by = gaps_by or max(taken, key=taken.__getitem__, default="")
        if by and between < claim.waiting_ns:
            taken[by] += claim.waiting_ns - between
        gaps_by = name if between else gaps_by
        adds = min(adds + between, totals[name])
        ranked[name] = Saving(totals[name], adds, dict(taken), min(between, adds))
    return ranked


def _bounded(claim: Claim, times_ns: Mapping[int, float], gaps_ns: float) -> Claim:
    ops = {
        row: min(saved, times_ns[row])
        for row, saved in sorted(claim.ops_ns.items())
        if isfinite(saved) and saved > 0 and times_ns.get(row, 0.0) > 0
    }
    waiting = claim.waiting_ns if isfinite(claim.waiting_ns) else 0.0
    if claim.ops_ns:  # gaps go with ops, and none with ops that take no time of the step
        waiting = min(waiting, gaps_ns) if ops else 0.0
    return claim._replace(ops_ns=ops, waiting_ns=max(0.0, waiting))


@once_per_table
def critical_ns(step: OpTable) -> Mapping[int, float]:
    """Return the kernel times of the critical device, by row.

    It works longest outside of collectives, in which the others wait for it: what is saved on them
    alone makes no step shorter.
    """
    by_device, kernel_ns = rows_by_device(step, range(len(step))), step.columns.kernel_ns
    rows = critical_rows(step, by_device) if by_device else ()
    return {row: kernel_ns[row] for row in rows}


class OpPlace(NamedTuple):
    """An op of a step, and its row."""

    row: int
    op: Op


@once_per_table
def critical_ops(step: OpTable) -> Sequence[OpPlace]:
    """Return the ops of the device that takes longest, in their order."""
    return tuple(OpPlace(row, step.op(row)) for row in critical_ns(step))


@once_per_table
def step_ns(step: OpTable) -> float:
    """Return the kernel time of a step on its critical device."""
    return sum(critical_ns(step).values())


def share_of_step(step: OpTable, took_ns: float) -> str:
    """Return a time as a part of a step, in words."""
    return percent(took_ns / (step_ns(step) or 1.0))


def check_savings(
    step: OpTable,
    saved: Mapping[int, float],
    share: Limit,
    *,
    sentence: str,
    arithmetic: str,
    name: Callable[[OpPlace], str] = lambda placed: op_name(placed.op),
) -> Answer:
    """Compare a saving with a share of the step."""
    whole = step_ns(step)
    part = sum(saved.values()) / whole if whole else 0.0
    weighed = (
        (name(placed), saved[placed.row], placed.op.number)
        for placed in critical_ops(step)
        if placed.row in saved
    )
    answer = share.at_most(part, sentence, heaviest(weighed, of=whole, least=_TOLD))
    return answer.saving(saved, arithmetic)


#: The bandwidth of DRAM where a capture does not name its chip: that of the slowest.
_SLOWEST_GB_S: Final = 288.0
#: What brings an input in shape is far too slow from so many times its bytes by the bandwidth on:
#: real moves and conversions of whole tensors take 1 to 3 times, those that also pad 5 to 10.
_FAR_ABOVE: Final = 10.0
#: And from so long on: shorter ones are mostly launching.
_SHORT_NS: Final = 20_000.0
#: What such an op could take, of its bytes by the bandwidth.
_REACHABLE: Final = 3.0


class Removal(NamedTuple):
    """The saving of removing an op.

    Of one that has to stay and is far too ``slow`` it is only a part; ``slow`` says what it is.
    """

    saved_ns: float
    slow: str = ""


def removable(step: OpTable, is_one: Callable[[Signature], bool]) -> Mapping[int, Removal]:
    """Return the ops of a kind that could go, by row.

    What comes in row-major from the host has to be brought in shape somewhere, and so has what the
    step begins and ends with. That stays, unless it takes many times what its bytes need: then it
    is a slow conversion of an input, and what can be saved is the rest.
    """
    ops, board = critical_ops(step), board_of(step)
    bandwidth = _SLOWEST_GB_S if board is None else board.dram_gb_s
    arrives = _arriving(step)
    found: dict[int, Removal] = {}
    for at, (row, op) in enumerate(ops):
        if not is_one(op.signature):
            continue
        if row not in arrives and 0 < at < len(ops) - 1:
            found[row] = Removal(op.kernel_ns)
            continue
        read = sum(map(_logical_bytes, op.signature.inputs[:1]))
        # What it gives is as large where a capture does not tell.
        moved = (read + (sum(map(_logical_bytes, op.signature.outputs)) or read)) / bandwidth
        if op.kernel_ns > max(_FAR_ABOVE * moved, _SHORT_NS) and moved:
            left = max(_REACHABLE * moved, LAUNCH_NS)
            is_last = row not in arrives and at == len(ops) - 1 > 0
            end = "output" if is_last else "input"
            found[row] = Removal(op.kernel_ns - left, f"slow {end} conversion")
    return found


def _logical_bytes(tensor: Tensor) -> float:
    # Without padding, which is what makes many conversions slow.
    return prod(tensor.shape) * BYTES.get(tensor.dtype, 0.0)


@once_per_table
def _arriving(step: OpTable) -> frozenset[int]:
    ops = critical_ops(step)
    first_seen = without_producer([op.signature for _, op in ops])
    return frozenset(
        row
        for (row, op), arrives in zip(ops, first_seen, strict=True)
        if arrives and op.signature.inputs[0].layout == "ROW_MAJOR"
    )


def check_removals(
    step: OpTable,
    found: Mapping[int, Removal],
    share: Limit,
    *,
    noun: str,
    sentence: str,
    name: Callable[[OpPlace], str] = lambda placed: op_name(placed.op),
) -> Answer:
    """Compare the time of removable ops with a share of the step."""
    saved = {row: each.saved_ns for row, each in found.items()}
    gaps_ns = launch_gaps_ns(step, (row for row, each in found.items() if not each.slow))
    slow = Counter(each.slow for each in found.values() if each.slow)
    kinds = " and ".join(counted(slow[kind], kind) for kind in slow)
    took = duration(sum(saved.values())) + gaps_text(gaps_ns, len(found))
    arithmetic = f"at most the time of {counted(len(found), noun)}: {took}"
    sentence += f", {kinds} among them" if kinds else ""

    def named(placed: OpPlace) -> str:
        slow = found[placed.row].slow
        return f"{name(placed)}, a {slow}" if slow else name(placed)

    answer = check_savings(step, saved, share, sentence=sentence, arithmetic=arithmetic, name=named)
    return answer.saving(saved, arithmetic, waiting_ns=gaps_ns)


def launch_gaps_ns(step: OpTable, rows: Iterable[int]) -> float:
    """Return the gaps that go with some ops, inside replays.

    Outside of replays the host decides how long a gap is, and the profiler makes it longer.
    """
    wanted = set(rows)
    gaps = (
        op.gap_ns or 0.0
        for row, op in critical_ops(step)[1:]
        if row in wanted and op.replay is not None
    )
    return sum(min(max(gap, 0.0), LAUNCH_NS) for gap in gaps)


def gaps_text(gaps_ns: float, ops: int) -> str:
    """Say how much gaps add to some ops; "" for nothing."""
    if not gaps_ns:
        return ""
    before = "the gap before it" if ops == 1 else "the gaps before them"
    return f" and {duration(gaps_ns)} of {before}"


def advice_for(weights: Iterable[tuple[str, float]], *, most: int = 2) -> str:
    """Return the heaviest advice as a sentence.

    >>> advice_for([("drop moves", 3.0), ("split weights", 2.0), ("drop moves", 1.0), ("", 9.0)])
    'Drop moves; split weights.'
    """
    totals: dict[str, float] = defaultdict(float)
    for text, weight in weights:
        if text:
            totals[text] += weight
    ranked = sorted(totals, key=lambda text: (-totals[text], text))
    enough = [text for text in ranked if totals[text] >= _WORTH_A_WORD * totals[ranked[0]]]
    return as_sentence("; ".join(enough[:most]))


def as_sentence(text: str) -> str:
    """Return a text with a capital and a full stop."""
    return f"{text[0].upper()}{text[1:]}." if text else ""


#: A host that sends op after op takes longer for each; in a replay few gaps are as long.
_LONG_NS: Final = 5_000.0
#: Gaps that make up that much of the waiting are those to look at.
_MOST: Final = 0.8
#: So many ops are named by their numbers.
_NAMED: Final = 3


class Gap(NamedTuple):
    """The time before an op since the end of the previous one."""

    op: Op
    ns: float


class Waiting(NamedTuple):
    """The gaps of a step, and the time of its kernels."""

    gaps: Sequence[Gap]
    kernels_ns: float

    @property
    def ns(self) -> float:
        """The waiting time."""
        return sum(gap.ns for gap in self.gaps)

    @property
    def share(self) -> float:
        """The part of the time in which it waits."""
        whole = self.ns + self.kernels_ns
        return self.ns / whole if whole else 0.0

    @property
    def before_each_op(self) -> bool:
        """True if it waits before most ops, as for a host."""
        return bool(self.gaps) and median(gap.ns for gap in self.gaps) >= _LONG_NS

    @property
    def places(self) -> str:
        """Say before which ops it waits most."""
        ordered = sorted(self.gaps, key=lambda gap: -gap.ns)
        upto = enumerate(accumulate(gap.ns for gap in ordered), 1)
        some, ns = next((at, ns) for at, ns in upto if ns >= _MOST * self.ns)
        part = ns / self.ns if self.ns else 0.0
        numbers = [f"#{gap.op.number}" for gap in ordered[:some] if gap.op.number]
        named = ", ".join([*numbers[:_NAMED], *(["…"] if len(numbers) > _NAMED else [])])
        which = f" ({named})" if named else ""
        return f"{percent(part)} of that before {some} of {counted(len(ordered), 'op')}{which}"

    def evidence(self) -> Iterator[Evidence]:
        """Return before which ops it waits, the longest first."""
        ops = [gap.op._replace(gap_ns=gap.ns) for gap in self.gaps]
        return worst_ops(ops, lambda op: op.gap_ns or 0.0, of=self.ns + self.kernels_ns)


@once_per_table
def waiting_in(step: OpTable) -> Waiting:
    """Return the gaps of a step, without those of compilation."""
    gaps = (Gap(op, max(op.gap_ns or 0.0, 0.0)) for _, op in critical_ops(step)[1:])
    return Waiting(tuple(gap for gap in gaps if gap.ns < COMPILING_NS), step_ns(step))


def lasting_waiting(step: OpTable) -> Waiting:
    """Return the gaps of a call that is under way.

    Of layers that run one after the other, none waits longer than the last.
    """
    placed = critical_ops(step)
    gaps = [max(op.gap_ns or 0.0, 0.0) for _, op in placed]
    for layers in find_layers([step.columns.signature[each.row] for each in placed]):
        if layers.is_long:
            last = layers.stop - layers.length
            for at in range(layers.start, last):
                gaps[at] = min(gaps[at], gaps[last + (at - layers.start) % layers.length])
    lasting = (Gap(each.op, ns) for each, ns in zip(placed[1:], gaps[1:], strict=True))
    return Waiting(tuple(gap for gap in lasting if gap.ns < COMPILING_NS), step_ns(step))


def told_gaps_ns(subject: Subject) -> float | None:
    """Return the waiting time of a step; None if unknown."""
    if subject.ops is None or isinstance(gaps_of(subject), str):
        return None
    waiting = waiting_in(step_of(subject.ops))
    return waiting.ns if waiting.gaps else None
