"""Pages of tt-lang kernels: a log, its goals, its plan, comparisons."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import zip_longest
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from pytest_ttnn_perf.analysis.ops.roofline import board_of_arch
from pytest_ttnn_perf.analysis.rules.kernels import (
    L1_BUDGET_BYTES,
    blocks_of,
    kib,
    l1_of,
    least_ns,
    measured_at,
    stalls_of,
    target_cores,
    uneven_cores,
)
from pytest_ttnn_perf.core.finding import Family, RuleOutcome, Subject
from pytest_ttnn_perf.core.text import counted, duration, percent, size
from pytest_ttnn_perf.report.findings import State
from pytest_ttnn_perf.report.tables import Listing, cut_end, format_change

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from pytest_ttnn_perf.analysis.readers.ttlang import (
        AutoProfile,
        CircularBuffer,
        Kernel,
        ProgramPerf,
        Roofline,
        SimOperation,
        ThreadProfile,
        Transfers,
        TtlangLog,
    )
    from pytest_ttnn_perf.analysis.rules.kernels import Blocks
    from pytest_ttnn_perf.core.finding import Finding
    from pytest_ttnn_perf.core.hardware import Scalar
    from pytest_ttnn_perf.core.ops import OpTable

#: Pages are made for a terminal of this width: no number is cut, only source text is.
_WIDTH: Final = 80
_BAR: Final = 16
_MOST_PROGRAMS: Final = 8
_TILES: Final = {2048: "a bfloat16 tile", 1088: "a bfloat8_b tile", 576: "a bfloat4_b tile",
                 4096: "a float32 tile"}  # fmt: skip
#: A thread that runs for this part of the time runs for all of it.
_WHOLE: Final = 0.99
_NO_LINES: Final = "ttnn-perf run --profiler lines -- python K"
_NO_TIMES: Final = "ttnn-perf run --profiler ttlang -- python K"


def log_lines(log: TtlangLog, *, whole: bool = False) -> list[str]:
    """Return the page of a log; ``whole``: all lines and threads."""
    lines: list[str] = []
    operations = log.sim.operations if log.sim else ()
    pages = [*_program_pages(log), *_profile_pages(log, whole=whole)]
    for page in (*pages, *(list(_operation_page(one)) for one in operations)):
        lines += ["", *page] if lines else page
    if log.l1_overflow:
        asked, budget = (f"{count:,} B" for count in log.l1_overflow)
        lines.append(f"L1: dataflow buffers ask for {asked}, a core has {budget}")
    if log.signpost_profiles:
        lines += [""] if lines else []
        lines.append("signposts             thread    hits      cycles  average")
        lines += [
            f"  {cut_end(each.name, 18):<18}  {each.thread:<8} {each.hits:>5} "
            f"{each.total_cycles:>11,} {each.average_cycles:>8,}"
            for each in log.signpost_profiles[-1].signposts
        ]
    lines += [f"line {each.line}: {each.kind.value}: {each.text}" for each in log.problems]
    return lines


# The page of a program of a PERF SUMMARY.


def _program_pages(log: TtlangLog) -> Iterator[list[str]]:
    kernels = log.kernels
    for number, kernel in enumerate(kernels[:_MOST_PROGRAMS], start=1):
        yield list(_program_page(kernel, f"{number} of {counted(len(kernels), 'program')}", log))
    if len(kernels) > _MOST_PROGRAMS:
        yield [f"... and {len(kernels) - _MOST_PROGRAMS} more; --format json has them"]


def _program_page(kernel: Kernel, place: str, log: TtlangLog) -> Iterator[str]:
    program, ns, there = kernel.program, kernel.time_ns, kernel.cores_there
    chip = "chip not in the log"
    if kernel.arch is not None:
        chip = f"{kernel.arch}, {kernel.clock_mhz or 0:g} MHz"
    head = f"kernel {program.name or '(no name)'}   program {program.program_id}, {chip}"
    yield f"{head}{place:>{max(_WIDTH - len(head), len(place) + 2)}}"
    yield _row("time", duration(ns), f"{program.duration.cycles:,} cycles")
    if log.is_instrumented:
        yield "                instrumented: an auto-profile slowed the run; compare no time"
    grid = "x".join(map(str, program.grid))
    used = f"of {there}, grid {grid}" if there else f"grid {grid}; the log does not say of how many"
    yield _row("cores", str(program.cores), used, _part(program.cores, there))
    for name, moved in _moved(program):
        yield _row(name, size(moved.bytes), _transfers(program, moved))
    board = board_of_arch(kernel.arch)
    peak = board.dram_gb_s if board else None
    of = f"of {peak:g}" if peak else "the peak of the chip is unknown"
    part = _part(kernel.dram_bytes / ns if ns else 0.0, peak)
    yield _row("bandwidth", f"{kernel.gb_s:.1f} GB/s", of, part)
    yield f"  waits         {_waits(kernel)}"
    if peak and ns:
        floor = kernel.dram_bytes / peak
        ratio = f": the time is {ns / floor:.1f} times that" if floor else ""
        yield _row("floor", duration(floor), f"DRAM bytes / peak{ratio}")
    yield from _threads(kernel)
    tile = kernel.tile_bytes
    read, written = (moved.bytes / tile for moved in (program.dram_read, program.dram_write))
    yield f"  tensors       not in the log: {read:,.0f} tiles read, {written:,.0f} written"
    if not log.auto_profiles:
        yield f"  not in the log: bound, lines    {_NO_LINES}"
    skew = uneven_cores.check(Subject(kernels=log))
    if skew.outcome is RuleOutcome.FOUND and str(kernel) in (skew.reason or ""):
        yield f"  anomaly: {uneven_cores.code} {skew.reason}"


def _row(name: str, value: str, text: str, part: str = "") -> str:
    line = f"  {name:<13}{value:>10}  {text}"
    return f"{line:<44}{part}" if part and len(line) < 44 else f"{line}  {part}".rstrip()


def _part(value: float, whole: float | None) -> str:
    """Return a bar of a part of a whole; empty if unknown.

    >>> _part(4, 64)
    '[#...............]    6.2 %'
    """
    if not whole:
        return ""
    filled = max(round(min(1.0, value / whole) * _BAR), 1 if value else 0)
    return f"[{'#' * filled:.<{_BAR}}] {percent(value / whole):>8}"


def _moved(program: ProgramPerf) -> Iterator[tuple[str, Transfers]]:
    yield "DRAM read", program.dram_read
    yield "DRAM written", program.dram_write
    inside = (program.l1_read, program.l1_write, program.multicast)
    for name, moved in zip(("L1 read", "L1 written", "pipes"), inside, strict=True):
        if moved is not None and moved.bytes:
            yield name, moved


def _transfers(program: ProgramPerf, moved: Transfers) -> str:
    count = "" if moved.transfers is None else counted(moved.transfers, "transfer")
    if not count or not moved.transfers or len(program.transfer_sizes) != 1:
        return count
    each = program.transfer_sizes[0].bytes
    tile = f" ({_TILES[each]})" if each in _TILES else ""
    return f"{count} of {each:,} B{tile}"


def _waits(kernel: Kernel) -> str:
    program = kernel.program
    if not kernel.barriers:
        return "not in the log: ttnn 0.77 and newer do not count barriers"
    read, written = program.read_barriers or 0, program.write_barriers or 0
    each = [f"{tiles:.0f}" for tiles in kernel.tiles_per_wait.values()]
    own = " + ".join(f"{waits / program.cores:.3g}" for waits in (read, written))
    tiles = f"{' and '.join(dict.fromkeys(each))} {'tiles' if each != ['1'] else 'tile'} each"
    return f"{read:,} read, {written:,} write: {tiles}, {own} on a core"


def _threads(kernel: Kernel) -> Iterator[str]:
    whole = kernel.program.duration.cycles
    alike: dict[tuple[int, int], list[str]] = defaultdict(list)
    for time in kernel.program.kernel_times:
        alike[time.longest.cycles, time.shortest.cycles].append(time.thread)
    if not alike:
        return
    yield "  threads       slowest core    quickest"
    for (longest, shortest), names in alike.items():
        last = names[-1].rpartition("_")[2]
        name = names[0] if len(names) == 1 else f"{names[0]}..{last}"
        yield f"    {name:<12}{longest:>12,}{shortest:>12,}  {_part(longest, whole)}"
    if whole and all(shortest >= _WHOLE * whole for _, shortest in alike):
        yield "                all run for the whole time, which says nothing of the bound"


# The page of an auto-profile.


class HotLine(NamedTuple):
    """A source line with its cycles, and their share of its thread."""

    thread: str
    kernel: str | None
    line: int
    source: str
    cycles: int
    share: float
    waits: str


def hot_lines(log: TtlangLog) -> list[HotLine]:
    """Return the source lines that were hit, those with most cycles first.

    Cycles are sums over cores and iterations, with what the profiler adds. Lines of one thread that
    read alike are summed up by tt-lang, each time with all their cycles: the first stands for them.
    """
    found: dict[tuple[str, str], HotLine] = {}
    for thread in log.auto_profiles[-1].threads if log.auto_profiles else ():
        for line in thread.lines:
            source = line.source.strip()
            if not line.total_cycles or (thread.thread, source) in found:
                continue
            by = next((f" ({w.awaited}, {w.kernel} line {w.line})" for w in line.waits), "")
            waits = [f"{op.cycles:,} wait{by}" for op in line.ops if op.op == "cb_wait"]
            waits += [f"{op.cycles:,} reserve" for op in line.ops if op.op == "cb_reserve"]
            found[thread.thread, source] = HotLine(
                thread.thread, thread.kernel, line.line, source, line.total_cycles,
                line.total_cycles / thread.cycles if thread.cycles else 0.0, ", ".join(waits),
            )  # fmt: skip
    return sorted(found.values(), key=lambda hot: (-hot.cycles, hot.thread, hot.line))


def _profile_pages(log: TtlangLog, *, whole: bool) -> Iterator[list[str]]:
    if log.auto_profiles:
        yield list(_profile_page(log, log.auto_profiles[-1], whole=whole))
    elif log.flow_graphs or log.pipe_graphs:
        yield list(_buffers(log, ()))


def _profile_page(log: TtlangLog, profile: AutoProfile, *, whole: bool) -> Iterator[str]:
    names = ", ".join(dict.fromkeys(t.kernel for t in profile.threads if t.kernel))
    yield f"kernels {names or '(no names)'}    cycles of all cores: no wall time"
    line = profile.roofline
    yield from _thread_table(profile)
    yield from _bound_lines(line) if line else ()
    compute = [thread for thread in profile.threads if thread.thread.startswith("TRISC")]
    chosen = {max(compute, key=lambda thread: thread.cycles).thread} if compute else set()
    chosen |= {thread.thread for thread in profile.threads if thread not in compute or whole}
    yield "lines              cycles   share"
    hot = [each for each in hot_lines(log) if each.thread in chosen]
    for each in hot if whole else hot[:_MOST_HOT]:
        head = f"  {each.thread:<7} {each.line:>5} {each.cycles:>10,} {percent(each.share):>8}  "
        yield head + (each.source if whole else cut_end(each.source, _WIDTH - len(head)))
        if each.waits:
            yield f"{'':{_INDENT}}{each.waits}"
    yield from _buffers(log, [t for t in profile.threads if t.thread in chosen])
    if not log.perf_summaries:
        yield f"not in the log: time, bytes, cores   {_NO_TIMES}"
    yield "sums over cores; about 18 cycles of each zone are the probe"


_MOST_HOT: Final = 8
_INDENT: Final = 20
_MOST_CELLS: Final = 18


def _thread_table(profile: AutoProfile) -> Iterator[str]:
    works = {work.thread: work for work in profile.roofline.threads} if profile.roofline else {}
    longest = max((thread.cycles for thread in profile.threads), default=0) or 1
    wide = max(len(f"{longest:,}"), len("cycles"))
    head = f"  thread   {'kernel':<14} {'cycles':>{wide}}"
    yield f"{head}  {'waits':>{wide}}        {'work':>{wide}}" if works else head
    for thread in profile.threads:
        name = cut_end(thread.kernel or "-", 14)
        text = f"  {thread.thread:<8} {name:<14} {thread.cycles:>{wide},}"
        work = works.get(thread.thread)
        if work is not None and work.total_cycles:
            part = f"{work.waiting * 100:.0f} %"
            text += f"  {work.sync_cycles:>{wide},} {part:>5}  {work.work_cycles:>{wide},}  "
            cells = min(_MOST_CELLS, _WIDTH - 2 - len(text))
            total = round(work.total_cycles / longest * cells)
            working = min(total, round(work.work_cycles / longest * cells))
            text += f"[{'#' * working}{'w' * (total - working):.<{max(cells - working, 0)}}]"
        yield text
    if not works:
        yield "  an older report: it does not separate waiting from working"


def _bound_lines(line: Roofline) -> Iterator[str]:
    memory, compute = line.memory_cycles, line.compute_cycles
    if line.bound is None:
        return
    by = f"by {line.bound_percent} %" if line.bound_percent else "within a per cent"
    text = f"bound: {line.bound} {by}"
    if memory and compute:
        text = f"{text:<24} compute {compute:,} "
        cells = max(_WIDTH - len(text) - len(f"[] {memory:,} memory"), 2)
        at = int(memory / (memory + compute) * (cells - 1))
        text += f"[{'-' * at}o{'-' * (cells - 1 - at)}] {memory:,} memory"
    yield text
    if line.busiest is not None and line.busiest.waiting > _MOSTLY:
        yield "  but every thread waits for more than half of its cycles: overlap first"


_MOSTLY: Final = 0.5


def _buffers(log: TtlangLog, threads: Sequence[ThreadProfile]) -> Iterator[str]:
    graph = log.flow_graphs[-1] if log.flow_graphs else ()
    waits: dict[tuple[int, str], int] = defaultdict(int)
    shown = {thread.thread for thread in threads}
    for stall in stalls_of(log):
        if stall.buffer is not None and stall.thread in shown:
            waits[stall.buffer, stall.what] += stall.cycles
    if graph:
        yield "buffers            cycles waited: full on the left, empty on the right"
    for buffer in graph:
        full, empty = (waits.get((buffer.number, f"to be {how}")) for how in ("emptied", "filled"))
        left, right = _ends(buffer)
        before, behind = (f"-{n:,}->" if n else "->" for n in (full, empty))
        yield f"  {buffer.number:<2} {left:>26} {before:>10} [{buffer.number}] {behind} {right}"
    for pipe in log.pipe_graphs[-1] if log.pipe_graphs else ():
        ends = [f"({x},{y})" for x, y in filter(None, (pipe.first, pipe.last))]
        to = "..".join(dict.fromkeys(ends)) or "other cores"
        source = "({},{})".format(*pipe.source)
        yield f"pipes     {source} -> {to} into buffer {pipe.receiver_buffer}"


def _ends(buffer: CircularBuffer) -> tuple[str, str]:
    moving = {op.kernel for op in buffer.copies}
    left = ", ".join(dict.fromkeys(op.kernel for op in buffer.producers))
    right = ", ".join(dict.fromkeys(op.kernel for op in buffer.consumers))
    if left and left in moving:
        left = f"DRAM -> {left}"
    return left, f"{right} -> DRAM" if right and right in moving else right


# The page of a simulated operation.


def _operation_page(one: SimOperation) -> Iterator[str]:
    grid = f", grid {'x'.join(map(str, one.grid))}" if one.grid else ""
    nodes = f"{one.nodes_working} of {counted(one.nodes, 'node')} take tiles{grid}"
    yield f"operation {one.name or '(no name)'}    simulated: no times    {nodes}"
    each = one.copied_tiles / one.copies if one.copies else 0.0
    flight = "" if one.in_flight is None else f", {one.in_flight} in flight"
    yield _row("copies", f"{one.copies:,}", f"{each:.1f} tiles each{flight}")
    about = "" if one.declared else ", at least"
    yield _row("L1 of a node", kib(l1_of(one)), f"of {kib(L1_BUDGET_BYTES)}{about}",
               "" if about else _part(l1_of(one), L1_BUDGET_BYTES))  # fmt: skip
    for buffer in one.declared:
        shape = "x".join(map(str, buffer.shape))
        yield f"  buffer        {buffer.name}: {shape} tiles, block_count {buffer.block_count}"
    if not one.declared:
        alike = Counter((buffer.tiles, buffer.fullest) for buffer in one.buffers)
        held = (f"{n} of {tiles} tiles, {most} held" for (tiles, most), n in alike.items())
        yield f"  buffers       {'; '.join(held)}"
    for use in one.tensors:
        shape = "x".join(map(str, use.shape))
        read = f"{use.read:,} tiles read, {use.distinct:,} of its {use.tiles:,}"
        moved = read if use.read else f"{use.written:,} tiles written"
        yield f"  tensor        {use.name} {shape} {use.dtype}: {moved}"


# The three goals, in the order in which they pay.


class Goal(Struct, frozen=True):
    """A goal of a kernel, with the most it could save."""

    number: int
    name: str
    state: State
    text: str
    codes: tuple[str, ...]
    saving_ns: float | None = None


class Goals(Struct, frozen=True):
    """The goals of one kernel, and what to do first."""

    kernel: str
    goals: tuple[Goal, ...]
    first: str
    where: str = ""
    simulated: bool = False


_NO_TARGET: Final = "--fact target=n150 says of how many"

#: The rules of each goal: the first of them names it.
_GOALS: Final = {
    "cores": ("TTP801", "TTP807"),
    "traffic": ("TTP809", "TTP811"),
    "blocks": ("TTP810", "TTP805", "TTP808"),
}
#: Cores that are nearly all, and a bandwidth that more cores would not raise.
_ENOUGH_CORES: Final = 0.9
_ENOUGH_BANDWIDTH: Final = 0.75
#: What an earlier goal has to save of the time to come before a later one.
_WORTH: Final = 0.05
_STATES: Final = {
    RuleOutcome.FOUND: State.OPEN, RuleOutcome.CLEAN: State.DONE,
    RuleOutcome.NOT_MEASURED: State.NOT_MEASURED, RuleOutcome.NOT_APPLICABLE: State.DONE,
}  # fmt: skip


def goals_of(
    log: TtlangLog, facts: Mapping[str, Scalar], findings: Iterable[Finding]
) -> tuple[Goals, ...]:
    """Return the goals of named kernels, or of the longest."""
    asked = {finding.code: finding for finding in findings}
    named = [kernel for kernel in log.kernels if kernel.program.name]
    longest = sorted(log.kernels, key=lambda kernel: -kernel.time_ns)[:1]
    where = measured_at(log, facts)
    blocks = {each.name: each for each in blocks_of(log, facts)}
    if not longest:
        goals = [_goal_of_rules(name, asked) for name in _GOALS]
        title = "simulated operations: no time" if log.sim else "profiles: no wall time"
        if log.sim and len(log.sim.operations) == 1:
            title = f"{log.sim.operations[0]}, simulated: no time"
        first = _first(goals, asked, None)
        if log.sim and first == _UNMEASURED:
            first = "state the chip, --fact target=n150; times are measured on hardware"
        return (Goals(title, tuple(goals), first, where, simulated=log.sim is not None),)
    told = []
    for kernel in named[:_MOST_PROGRAMS] or longest:
        goals = [
            _cores_goal(kernel, asked, target_cores(facts)),
            _traffic_goal(kernel, asked),
            _blocks_goal(blocks.get(str(kernel)), asked),
        ]
        title = f"{kernel.program.name or str(kernel)}: {duration(kernel.time_ns)}"
        title += ", instrumented" if log.is_instrumented else ""
        told.append(Goals(title, tuple(goals), _first(goals, asked, kernel), where))
    return tuple(told)


def _goal_of_rules(name: str, asked: Mapping[str, Finding]) -> Goal:
    own = [asked[code] for code in _GOALS[name] if code in asked]
    found = [finding for finding in own if finding.stands]
    shown = found or [one for one in own if one.outcome is not RuleOutcome.NOT_APPLICABLE] or own
    state = _STATES[shown[0].outcome] if shown else State.NOT_MEASURED
    text = (shown[0].reason or "") if shown and state is State.OPEN else ""
    codes = tuple(one.code for one in found or own)
    return Goal(list(_GOALS).index(name) + 1, name, state, text, codes)


def _cores_goal(kernel: Kernel, asked: Mapping[str, Finding], target: int | None) -> Goal:
    goal, cores, there = _goal_of_rules("cores", asked), kernel.program.cores, target
    there = there or kernel.cores_there
    if not there:
        return goal
    text, board = f"{cores} of {there}", board_of_arch(kernel.arch)
    peak = kernel.time_ns * board.dram_gb_s if board else 0.0
    saving = max(0.0, kernel.time_ns - least_ns(kernel, there))
    codes = tuple(code for code in _GOALS["cores"] if code == "TTP801" or _stands(asked, code))
    goal = replace(goal, text=text, codes=codes)
    if (
        cores >= _ENOUGH_CORES * there
        or (peak and kernel.dram_bytes >= _ENOUGH_BANDWIDTH * peak)
        or 0 < kernel.writes <= cores
        or not saving
    ):
        return replace(goal, state=State.DONE)
    if kernel.waits:
        text += ": they wait, more would too"
        return replace(goal, state=State.NOT_APPLICABLE, text=text)
    text += f": up to {duration(saving)}"
    return replace(goal, state=State.OPEN, text=text, saving_ns=saving)


def _stands(asked: Mapping[str, Finding], code: str) -> bool:
    return code in asked and asked[code].stands


def _traffic_goal(kernel: Kernel, asked: Mapping[str, Finding]) -> Goal:
    read, written = kernel.program.dram_read.bytes, kernel.program.dram_write.bytes
    text = f"{read / written:.1f} B read per B written" if written else "nothing is written"
    saving = asked["TTP811"].saving_ns if _stands(asked, "TTP811") else None
    text += f"; at most {duration(saving)}" if saving else ""
    return replace(_goal_of_rules("traffic", asked), text=text, saving_ns=saving)


def _blocks_goal(blocks: Blocks | None, asked: Mapping[str, Finding]) -> Goal:
    known = {code: asked[code] for code in _GOALS["blocks"][:1] if code in asked}
    goal = _goal_of_rules("blocks", known)
    if blocks is None:
        return replace(goal, text="ttnn 0.77 and newer do not count barriers")
    low, high = f"{blocks.least_ns / 1000:.1f}", f"{blocks.most_ns / 1000:.1f}"
    text = f"{blocks.tiles:.0f} tiles a wait; {low}-{high} µs in all"
    saving = known["TTP810"].saving_ns if _stands(known, "TTP810") else None
    return replace(goal, text=text, saving_ns=saving)


def _first(goals: Sequence[Goal], asked: Mapping[str, Finding], kernel: Kernel | None) -> str:
    invalid = [one.code for one in asked.values() if one.fails and Family.VALIDITY.has(one.code)]
    if invalid:
        return f"validity, {', '.join(invalid)}: it puts everything else in doubt"
    opened = [goal for goal in goals if goal.state is State.OPEN]
    least = _WORTH * kernel.time_ns if kernel else 0.0
    worth = [goal for goal in opened if goal.saving_ns is None or goal.saving_ns > least]
    for goal in worth or opened:
        code = goal.codes[0]
        fix = asked[code].fix if _stands(asked, code) else None
        if code == "TTP801":
            grid = f"grid={kernel.program.grid} -> " if kernel else ""
            fix = f'{grid}grid="full", and as many blocks as cores'
        return f"{goal.number} {goal.name}, {code}{f': {fix}' if fix else ''}"
    if _stands(asked, "TTP808"):
        return f"TTP808: {asked['TTP808'].fix}"
    if any(goal.state is State.NOT_MEASURED for goal in goals):
        return _UNMEASURED
    return "nothing is open"


_UNMEASURED: Final = f"measure what is not measured: {_NO_TIMES}"


def goal_lines(goals: Sequence[Goals]) -> Iterator[str]:
    for one in goals:
        yield f"kernel {one.kernel}"
        if one.where:
            yield f"  {one.where}"
        wide = max(len(goal.state.value) for goal in one.goals)
        for goal in one.goals:
            codes = ", ".join(goal.codes)
            text = goal.text
            if goal.state is State.NOT_MEASURED and not text:
                text = _NO_TARGET if one.simulated else "--profiler ttlang measures it"
            line = f"  {goal.number} {goal.name:<8} {goal.state.value:<{wide}}  {text}"
            room = _WIDTH - 2 - len(codes)
            if len(line) > room:  # between words: no number is cut
                line = f"{line[: room - 1].rpartition(' ')[0]} …"
            yield f"{line:<{_WIDTH - 1 - len(codes)}} {codes}".rstrip()
        yield f"first: {one.first}"


# A plan in cycles, of a log that has no wall time.

#: tt-lang's own measurement of two blocks in place of one: more gave nothing.
_SEEN: Final = "15-20 % of a thread"
_OVERLAP: Final = "TTP808 overlap: block_count 2"


def cycle_plan(log: TtlangLog, facts: Mapping[str, Scalar]) -> Listing:
    """Lay out the plan of an auto-profile, which knows cycles alone."""
    profile = log.auto_profiles[-1]
    line = profile.roofline
    longest = max((thread.cycles for thread in profile.threads), default=0)
    work = max((each.work_cycles for each in line.threads), default=0) if line else 0
    names = ", ".join(dict.fromkeys(t.kernel for t in profile.threads if t.kernel))
    lines = [f"{names}: longest thread {longest:,} cycles; longest work {work:,}"]
    steps: list[dict[str, object]] = []
    saved = longest - work
    if not work:
        lines = [f"{names}: longest thread {longest:,} cycles; work not in an older report"]
    elif saved > 0:
        steps.append({"code": "TTP808", "do": _OVERLAP, "saves_cycles": saved,
                      "share": saved / longest})  # fmt: skip
        lines.append("  step  do                             at most              seen elsewhere")
        most = f"{saved:,} cycles, {saved / longest:.0%}".replace("%", " %")
        lines.append(f"     1  {_OVERLAP:<30} {most:<20} {_SEEN}")
    if log.is_instrumented:
        lines.append("the PERF SUMMARY is instrumented: an auto-profile slowed it, it is no time")
    lines += [f"times, cores, bytes: {_NO_TIMES}", *questions(facts)]
    document = {"plans": [], "cycles": {"longest_thread": longest, "longest_work": work,
                                        "steps": steps}}  # fmt: skip
    rows = tuple(tuple(step.values()) for step in steps)
    return Listing(tuple(lines), document, ("code", "do", "saves_cycles", "share"), rows)


#: What a plan cannot see, by the fact that states it.
_QUESTIONS: Final = {
    "production_shape": "What sizes in production?",
    "target": "Which chips?",
}


def questions(facts: Mapping[str, Scalar]) -> Iterator[str]:
    """Yield what to ask before a kernel is changed."""
    missing = [fact for fact in _QUESTIONS if facts.get(fact) is None]
    if missing:
        asked = " ".join(_QUESTIONS[fact] for fact in missing)
        yield f"ask before changing: {asked}"
        yield f"state the answers: --fact {'=... --fact '.join(missing)}=..."
    yield f"{'' if missing else 'ask before changing; '}then: ttnn-perf try -m TEXT"


# Two logs side by side.


class KernelPair(NamedTuple):
    """A kernel before and after; None where it is missing."""

    name: str
    before: Kernel | None
    after: Kernel | None

    @property
    def obstacle(self) -> str | None:
        """Why times are not comparable; None if they are."""
        if self.before is None or self.after is None:
            return None
        moved = [
            (each.program.dram_read.bytes, each.program.dram_write.bytes)
            for each in (self.before, self.after)
        ]
        return None if moved[0] == moved[1] else "other bytes, so another problem size"


def kernel_pairs(before: TtlangLog, after: TtlangLog) -> list[KernelPair]:
    """Pair kernels by name; those without one by their position."""
    sides = before.kernels, after.kernels
    names = dict.fromkeys(k.program.name for own in sides for k in own if k.program.name)
    return [
        KernelPair(name or f"program {(one or other).program.program_id}", one, other)
        for name in (*names, None)
        for one, other in zip_longest(
            *([k for k in own if k.program.name == name] for own in sides)
        )
    ]


def comparison_lines(before: TtlangLog, after: TtlangLog) -> Iterator[str]:
    """Lay out two logs, kernel by kernel."""
    for pair in kernel_pairs(before, after):
        if pair.before is None or pair.after is None:
            yield f"{pair.name}: only {'before' if pair.before else 'after'}"
            continue
        yield f"{cut_end(pair.name, 21):<21} {'before':>14} {'after':>14}   change"
        yield from (f"  {name:<19} {old:>14} {new:>14}   {change}".rstrip()
                    for name, old, new, change in _changes(pair.before, pair.after))  # fmt: skip
        remarks = [pair.obstacle] if pair.obstacle else []
        for side, kernel, log in (("before", pair.before, before), ("after", pair.after, after)):
            remarks += [f"{side} has no chip line"] if kernel.arch is None else []
            remarks += [f"{side} is instrumented"] if log.is_instrumented else []
        if remarks:
            yield f"  not comparable: {'; '.join(remarks)}"
        else:
            yield "  the same bytes: the same problem"


def _changes(before: Kernel, after: Kernel) -> Iterator[tuple[str, str, str, str]]:
    kernels = before, after
    old, new = before.program, after.program

    def row(
        name: str, values: tuple[float, float], show: Callable[[float], str]
    ) -> tuple[str, str, str, str]:
        ratio = values[1] / values[0] if values[0] else None
        times = ratio is not None and not 0.5 <= ratio <= 2 and name != "bandwidth"
        change = "-" if ratio is None else f"x {ratio:.3g}" if times else format_change(ratio - 1)
        return name, show(values[0]), show(values[1]), change

    yield row("time", (before.time_ns, after.time_ns), duration)
    cores = [f"{k.program.cores} of {k.cores_there or '?'}" for k in kernels]
    yield "cores", cores[0], cores[1], f"{new.cores - old.cores:+}".replace("+0", "0")
    yield row("DRAM read", (old.dram_read.bytes, new.dram_read.bytes), size)
    yield row("DRAM written", (old.dram_write.bytes, new.dram_write.bytes), size)
    yield row("bandwidth", (before.gb_s, after.gb_s), "{:.1f} GB/s".format)
    yield "tiles per wait", _per_wait(before), _per_wait(after), ""


def _per_wait(kernel: Kernel) -> str:
    tiles = {way: f"{tiles:.0f}" for way, tiles in kernel.tiles_per_wait.items()}
    if len(set(tiles.values())) == 1:
        return f"{next(iter(tiles.values()))} {'/'.join(tiles)}"
    return ", ".join(f"{each} {way}" for way, each in tiles.items()) or "?"


# What else two logs differ in: the bounds, the lines of kernels, the chips.


def program_changes(before: TtlangLog, after: TtlangLog) -> tuple[str, ...]:
    """Return changes of grids and bounds, in words."""
    texts: list[str] = []
    for pair in kernel_pairs(before, after):
        if pair.before is not None and pair.after is not None:
            texts += _program_changes(pair.before.program, pair.after.program)
    bounds = [_bound(log) for log in (before, after)]
    if None not in bounds and bounds[0] != bounds[1]:
        texts.append(f"bound: {bounds[0]} → {bounds[1]}")
    return tuple(texts)


def _program_changes(then: ProgramPerf, now: ProgramPerf) -> Iterator[str]:
    name = now.name or then.name or f"program {now.program_id}"
    if then.grid != now.grid or then.cores != now.cores:
        grids = ["{}x{}".format(*program.grid) for program in (then, now)]
        yield f"{name}: grid {grids[0]} → {grids[1]}"
    if then.dram_channels and now.dram_channels and then.dram_channels != now.dram_channels:
        yield f"{name}: {then.dram_channels} → {now.dram_channels} DRAM channels"
    sizes = [", ".join(f"{size.bytes} B" for size in p.transfer_sizes) for p in (then, now)]
    if all(sizes) and sizes[0] != sizes[1]:
        yield f"{name}: transfers of {sizes[0]} → {sizes[1]}"


def _bound(log: TtlangLog) -> str | None:
    lines = [profile.roofline for profile in log.auto_profiles if profile.roofline is not None]
    if not lines or lines[-1].bound is None:
        return None
    apart = lines[-1].bound_percent
    return lines[-1].bound if apart is None else f"{lines[-1].bound} ({apart} %)"


class LineChange(NamedTuple):
    """Cycles of a kernel's line in both logs; None if missing."""

    thread: str
    source: str
    before: int | None
    after: int | None

    @property
    def delta(self) -> int:
        return (self.after or 0) - (self.before or 0)


def line_changes(before: TtlangLog, after: TtlangLog) -> tuple[LineChange, ...]:
    """Return the lines whose cycles changed, the largest change first.

    Cycles are sums over cores and iterations. Lines are known by their text: the profiler sums up
    equal ones, and numbers move with every edit.
    """
    ours, theirs = _cycles(before), _cycles(after)
    changes = (LineChange(*key, ours.get(key), theirs.get(key)) for key in {**ours, **theirs})
    changed = (change for change in changes if change.delta)
    return tuple(sorted(changed, key=lambda change: (-abs(change.delta), change[:2])))


def _cycles(log: TtlangLog) -> Mapping[tuple[str, str], int]:
    return {
        (f"{hot.thread} {hot.kernel or ''}".rstrip(), hot.source): hot.cycles
        for hot in hot_lines(log)
    }


#: A clock by the time of one op is right within this part of it.
_SAME_CLOCK: Final = 0.01


class Platform(NamedTuple):
    """The hardware of a capture; None for unknown properties."""

    architecture: str | None = None
    board: str | None = None
    devices: int | None = None
    cores: int | None = None
    clock_mhz: float | None = None


def platform_of_ops(table: OpTable) -> Platform:
    devices, cores = len(table.devices) or None, table.available_cores
    return Platform(table.arch, devices=devices, cores=cores, clock_mhz=table.clock_mhz)


def platform_of_log(log: TtlangLog) -> Platform:
    if not log.perf_summaries:
        return Platform()
    last = log.perf_summaries[-1]
    return Platform(last.arch, cores=last.max_compute_cores or None, clock_mhz=last.clock_mhz)


def hardware_changes(before: Platform, after: Platform) -> tuple[str, ...]:
    """Return the differences of two platforms, in words; unknown properties are none.

    >>> hardware_changes(Platform("wormhole_b0", cores=1), Platform("blackhole", devices=1))
    ('architecture wormhole_b0 → blackhole',)
    """
    texts = []
    for name, then, now in zip(Platform._fields, before, after, strict=True):
        if then is None or now is None or then == now:
            continue
        if isinstance(then, float) and isinstance(now, float):
            if abs(then - now) > _SAME_CLOCK * then:
                texts.append(f"clock {then:g} → {now:g} MHz")
        else:
            texts.append(f"{name} {then} → {now}")
    return tuple(texts)
