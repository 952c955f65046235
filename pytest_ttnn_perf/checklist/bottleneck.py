"""Names the one thing that holds a subject back most, from the outside in.

A device that waits for transfers or the host is not sped up by faster kernels, kernels on few cores
not by faster memory: the first of these that is beyond its limit is the bottleneck.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

from pytest_ttnn_perf._support.wording import percent
from pytest_ttnn_perf.checklist.dram_use import dram_use
from pytest_ttnn_perf.checklist.efficiency import judged_efficiency
from pytest_ttnn_perf.checklist.kernels import kernels_of, roofline_of
from pytest_ttnn_perf.checklist.op_times import device_ops, kernel_ns
from pytest_ttnn_perf.checklist.rules.ttp303_hot_data_in_dram import HotDataInDram
from pytest_ttnn_perf.checklist.rules.ttp305_unused_cores import UnusedCores
from pytest_ttnn_perf.checklist.rules.ttp401_host_bound import HostBound
from pytest_ttnn_perf.checklist.rules.ttp404_device_behind_e2e import DeviceBehindE2e
from pytest_ttnn_perf.checklist.rules.ttp503_transfer_bound import TransferBound
from pytest_ttnn_perf.checklist.rules.ttp801_grid_underused import GridUnderused
from pytest_ttnn_perf.checklist.rules.ttp803_small_transfers import SmallTransfers
from pytest_ttnn_perf.checklist.rules.ttp804_bound import Bound
from pytest_ttnn_perf.model.bottleneck import Bottleneck, BottleneckKind
from pytest_ttnn_perf.model.category import Category, category_of
from pytest_ttnn_perf.model.finding import RuleOutcome

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pytest_ttnn_perf.checklist.rule import Answer, Rule
    from pytest_ttnn_perf.model.ops import Op, OpTable
    from pytest_ttnn_perf.model.subject import Subject
    from pytest_ttnn_perf.model.ttlang import TtlangLog

#: tt-perf-report calls an op bound by DRAM, or by compute, from here.
_BOUND: Final = 0.65
#: Bytes that a kernel reads for each that it writes: more than three inputs for an output.
_READS_PER_WRITE: Final = 4.0
_WORK: Final = frozenset({Category.MATMUL, Category.CONV, Category.ATTENTION})

_Kind = TypeVar("_Kind", bound="Rule")


def bottleneck_of(subject: Subject, rules: Iterable[Rule] = ()) -> Bottleneck | None:
    """Return what holds a subject back; None where that cannot be told.

    ``rules`` are those with limits that a user has set; others have their defaults.
    """
    given = {type(rule): rule for rule in rules}
    found = _of_test(subject, given)
    if found is None and subject.kernels is not None:
        found = _of_kernels(subject, subject.kernels, given)
    if found is None and subject.ops is not None:
        found = _of_ops(subject, subject.ops, given)
    return found


def _of_test(subject: Subject, given: Mapping[type[Rule], Rule]) -> Bottleneck | None:
    """Return what keeps devices waiting."""
    without_profiler: Answer | None = None
    if subject.observation is not None:
        transfers = _said(BottleneckKind.TRANSFER, _rule(TransferBound, given).check(subject))
        if transfers is not None:
            return transfers
        without_profiler = _rule(DeviceBehindE2e, given).check(subject)
    if without_profiler is not None and without_profiler.value is not None:
        return _said(BottleneckKind.HOST, without_profiler)
    if subject.ops is None:
        return None
    return _said(BottleneckKind.HOST, _rule(HostBound, given).check(subject))


def _of_kernels(
    subject: Subject, log: TtlangLog, given: Mapping[type[Rule], Rule]
) -> Bottleneck | None:
    """Return what a kernel lacks: cores, larger transfers, or what its roofline says."""
    line = roofline_of(log)
    bound = None if isinstance(line, str) else line.bound
    cores = _said(BottleneckKind.CORES, _rule(GridUnderused, given).check(subject))
    if cores is not None:
        return cores
    balance = _rule(Bound, given).check(subject)
    if bound == "compute":
        return _said(BottleneckKind.COMPUTE, balance)
    small = _said(BottleneckKind.SMALL_TRANSFERS, _rule(SmallTransfers, given).check(subject))
    return small or _excess(log, balance) or _said(BottleneckKind.MEMORY, balance)


def _excess(log: TtlangLog, balance: Answer) -> Bottleneck | None:
    """Return whether a kernel that is bound by memory reads the same data again and again."""
    kernels = kernels_of(log)
    if isinstance(kernels, str) or balance.outcome is not RuleOutcome.FOUND:
        return None
    read = sum(kernel.program.dram_read.size.bytes for kernel in kernels)
    written = sum(kernel.program.dram_write.size.bytes for kernel in kernels)
    ratio = read / written if written else 0.0
    if ratio <= _READS_PER_WRITE:
        return None
    kind = BottleneckKind.DRAM_TRAFFIC
    sentence = f"{kind.value}: for each byte that they write to DRAM, programs read {ratio:.1f}"
    return Bottleneck(kind, sentence, ratio, _READS_PER_WRITE, "bytes read per byte written")


def _of_ops(
    subject: Subject, table: OpTable, given: Mapping[type[Rule], Rule]
) -> Bottleneck | None:
    """Return what ops lack: bandwidth, cores, or nothing but speed of compute."""
    use = dram_use(table)
    if use is not None and use > _BOUND:
        hot = _rule(HotDataInDram, given).check(subject)
        return _said(BottleneckKind.DRAM_TRAFFIC, hot) or _memory(use)
    cores = _said(BottleneckKind.CORES, _rule(UnusedCores, given).check(subject))
    return cores or _compute(table)


def _memory(use: float) -> Bottleneck:
    kind = BottleneckKind.MEMORY
    sentence = f"{kind.value}: ops use {percent(use)} of the bandwidth of DRAM"
    return Bottleneck(kind, sentence, use, _BOUND, "of the DRAM bandwidth")


def _compute(table: OpTable) -> Bottleneck | None:
    """Return whether most of the time goes into ops that are near what the device can do."""
    modelled = [op for op in device_ops(table) if _is_work(op)]
    if sum(op.kernel_ns for op in modelled) <= kernel_ns(table) / 2:
        return None
    reached = judged_efficiency(modelled, named="op", at_least=_BOUND, of=kernel_ns(table))
    if reached.outcome is not RuleOutcome.CLEAN or reached.value is None:
        return None
    kind = BottleneckKind.COMPUTE
    sentence = f"{kind.value}: the ops that compute reach {percent(reached.value)} of their ideal"
    return Bottleneck(kind, sentence, reached.value, _BOUND, reached.unit)


def _is_work(op: Op) -> bool:
    return op.ideal_ns is not None and category_of(op.signature.op) in _WORK


def _said(kind: BottleneckKind, answer: Answer) -> Bottleneck | None:
    """Return what a rule found, as a bottleneck."""
    if answer.outcome is not RuleOutcome.FOUND or answer.value is None or answer.limit is None:
        return None
    reason = (answer.reason or "").removeprefix(f"{kind.value}: ")
    sentence = f"{kind.value}: {reason}"
    return Bottleneck(kind, sentence, answer.value, answer.limit, answer.unit)


def _rule(kind: type[_Kind], given: Mapping[type[Rule], Rule]) -> _Kind:
    """Return a rule as it was given, else with its defaults."""
    rule = given.get(kind)
    return rule if isinstance(rule, kind) else kind()
