"""What two logs of tt-lang differ in: the programs, what bounds them, and the lines of kernels."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from pytest_ttnn_perf.analysis.captures.differences import Told

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pytest_ttnn_perf.records.ttlang import ProgramPerf, TtlangLog


def told_by_log(log: TtlangLog) -> Told:
    """Return what a log tells of its hardware."""
    if not log.perf_summaries:
        return Told()
    last = log.perf_summaries[-1]
    return Told(last.arch, cores=last.max_compute_cores or None, clock_mhz=last.clock_mhz)


def program_changes(before: TtlangLog, after: TtlangLog) -> tuple[str, ...]:
    """Return in words what changed of the programs beside what is a metric: grids and bounds.

    Programs are matched by their place in the last summary: their ids count all that ran before.
    """
    texts: list[str] = []
    if before.perf_summaries and after.perf_summaries:
        first, second = (log.perf_summaries[-1].programs for log in (before, after))
        if len(first) != len(second):
            texts.append(f"{len(first)} → {len(second)} programs")
        else:
            for then, now in zip(first, second, strict=True):
                texts += _program(then, now)
    bounds = [_bound(log) for log in (before, after)]
    if None not in bounds and bounds[0] != bounds[1]:
        texts.append(f"bound: {bounds[0]} → {bounds[1]}")
    return tuple(texts)


def _program(then: ProgramPerf, now: ProgramPerf) -> Iterator[str]:
    name = now.name or then.name or f"program {now.program_id}"
    if then.grid != now.grid or then.cores != now.cores:
        yield f"{name}: grid {_grid(then)} → {_grid(now)}"
    if then.dram_channels and now.dram_channels and then.dram_channels != now.dram_channels:
        yield f"{name}: {then.dram_channels} → {now.dram_channels} DRAM channels"
    sizes = [_sizes(program) for program in (then, now)]
    if all(sizes) and sizes[0] != sizes[1]:
        yield f"{name}: transfers of {sizes[0]} → {sizes[1]}"


def _grid(program: ProgramPerf) -> str:
    x, y = program.grid
    return f"{x}x{y}"


def _sizes(program: ProgramPerf) -> str:
    return ", ".join(f"{size.size.bytes} B" for size in program.transfer_sizes)


def _bound(log: TtlangLog) -> str | None:
    lines = [profile.roofline for profile in log.auto_profiles if profile.roofline is not None]
    if not lines or lines[-1].bound is None:
        return None
    apart = lines[-1].bound_percent
    return lines[-1].bound if apart is None else f"{lines[-1].bound} ({apart} %)"


class LineChange(NamedTuple):
    """The cycles of one line of a kernel in both logs; None in one that does not have it."""

    thread: str
    source: str
    before: int | None
    after: int | None

    @property
    def delta(self) -> int:
        """How many cycles it takes more."""
        return (self.after or 0) - (self.before or 0)


def line_changes(before: TtlangLog, after: TtlangLog) -> tuple[LineChange, ...]:
    """Return the lines whose cycles changed, the largest change first.

    Cycles are sums over cores and iterations. Lines are known by their text: the profiler sums up
    those that read alike, and numbers move with every edit.
    """
    ours, theirs = _cycles(before), _cycles(after)
    changes = (LineChange(*key, ours.get(key), theirs.get(key)) for key in {**ours, **theirs})
    changed = (change for change in changes if change.delta)
    return tuple(sorted(changed, key=lambda change: (-abs(change.delta), change[:2])))


def _cycles(log: TtlangLog) -> Mapping[tuple[str, str], int]:
    found: dict[tuple[str, str], int] = defaultdict(int)
    for profile in log.auto_profiles[-1:]:  # each is of all calls until then
        for thread in profile.threads:
            name = thread.total.thread
            if thread.total.kernel:
                name += f" {thread.total.kernel}"
            for line in thread.lines or ():
                cycles = line.total_cycles or line.longest_cycles
                if cycles:
                    found[name, line.source.strip()] = cycles
    return found
