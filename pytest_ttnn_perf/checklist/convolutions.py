"""The convolutions of a program, from an op table or else from a report."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_ttnn_perf._support.wording import counted
from pytest_ttnn_perf.checklist.attributes import flag
from pytest_ttnn_perf.checklist.derived import once_per_table
from pytest_ttnn_perf.checklist.op_times import described, kernel_ns, ops_like
from pytest_ttnn_perf.checklist.report_operations import called
from pytest_ttnn_perf.checklist.residency import sharding_in
from pytest_ttnn_perf.checklist.rule import clean, found, not_measured
from pytest_ttnn_perf.model.category import Category, category_of
from pytest_ttnn_perf.model.finding import Evidence

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pytest_ttnn_perf.checklist.rule import Answer
    from pytest_ttnn_perf.model.ops import Op, OpTable, Signature
    from pytest_ttnn_perf.model.report import Operation, Report
    from pytest_ttnn_perf.model.subject import Subject

#: Why rules about convolutions say nothing of a program without any.
NO_CONVOLUTIONS: Final = "no convolutions"
_NAME: Final = re.compile(r"(?:^|\.)conv(?:_transpose)?[123]d$")
_ACTIVATIONS: Final = "enable_act_double_buffer"
_WEIGHTS: Final = "enable_weights_double_buffer"


class Convolution(NamedTuple):
    """A convolution as it ran; None where that is not told.

    ``sharding`` is HEIGHT, WIDTH or BLOCK; ``output`` the shape of what it gives, channels last. A
    report tells no times, and of the double buffers what was asked for.
    """

    name: str
    device: int
    kernel_ns: float | None
    sharding: str | None
    output: tuple[int, ...] | None
    act_double_buffer: bool | None
    weights_double_buffer: bool | None
    ideal_ns: float | None = None

    @property
    def efficiency(self) -> float | None:
        """The ideal time of the profiler's model as a share of the time that it took."""
        return self.ideal_ns / self.kernel_ns if self.ideal_ns and self.kernel_ns else None


def convolutions(subject: Subject) -> Sequence[Convolution]:
    """Return the convolutions of the op table or, without one, of the report."""
    if subject.ops is not None:
        return _in_table(subject.ops)
    if subject.report is not None:
        report = subject.report
        return [_from_operation(report, each) for each in report_convolutions(report)]
    return []


def is_convolution(signature: Signature) -> bool:
    """Tell whether an op is a convolution, and not only what prepares one."""
    return category_of(signature.op) is Category.CONV


def report_convolutions(report: Report) -> list[Operation]:
    """Return the operations that ran a convolution; one of 1 by 1 may have run as a matmul.

    Where a report does not tell what ran, the operation's name has to do.
    """
    return [operation for operation in report.operations if _convolves(operation)]


def _convolves(operation: Operation) -> bool:
    if not operation.device_operations:
        return _NAME.search(operation.name) is not None
    return any(category_of(name) is Category.CONV for name in operation.device_operations)


@once_per_table
def _in_table(table: OpTable) -> Sequence[Convolution]:
    return tuple(map(_from_op, ops_like(table, is_convolution)))


def _from_op(op: Op) -> Convolution:
    inputs, outputs = op.signature.inputs, op.signature.outputs
    return Convolution(
        described(op),
        op.device,
        op.kernel_ns,
        sharding_in(inputs[0].memory) if inputs else None,
        (outputs[0].logical or outputs[0].padded) if outputs else None,
        flag(op.attributes, _ACTIVATIONS),
        flag(op.attributes, _WEIGHTS),
        op.ideal_ns,
    )


def _from_operation(report: Report, operation: Operation) -> Convolution:
    output = next((report.tensors.get(number) for number in operation.outputs), None)
    asked = operation.conv
    # What it gives is cut as what it computes with, unless it goes back to interleaved.
    sharding = sharding_in(output.memory) if output else None
    return Convolution(
        called(report, operation),
        0,
        None,
        sharding or sharding_in(asked.shard_layout if asked else None),
        output.shape if output else None,
        asked.enable_act_double_buffer if asked else None,
        asked.enable_weights_double_buffer if asked else None,
    )


def whole_ns(subject: Subject) -> float | None:
    """Return the kernel time that convolutions are a share of; None where none was measured."""
    return kernel_ns(subject.ops) if subject.ops is not None else None


def judged_switches(
    switched: Iterable[tuple[Convolution, bool | None]],
    *,
    buffered: str,
    at_most: float,
    of: float | None,
) -> Answer:
    """Compare the share of convolutions that have something switched off with a limit."""
    told = [(each, on) for each, on in switched if on is not None]
    if not told:
        return not_measured(f"the capture does not tell whether {buffered} are double-buffered")
    off = [each for each, on in told if not on]
    share, unit = len(off) / len(told), "of convolutions"
    if share <= at_most:
        return clean(share, limit=at_most, unit=unit)
    reason = f"{buffered} not double-buffered in {len(off)} of {counted(len(told), 'convolution')}"
    return found(reason, value=share, limit=at_most, unit=unit, evidence=heaviest(off, of=of))


def heaviest(listed: Iterable[Convolution], *, of: float | None) -> tuple[Evidence, ...]:
    """Return what is to be said of convolutions, like ones as one, the slowest first."""
    times: dict[str, list[float | None]] = defaultdict(list)
    for each in listed:
        times[each.name].append(each.kernel_ns)
    totals = {name: sum(time or 0.0 for time in each) for name, each in times.items()}
    return tuple(
        Evidence(
            f"{len(times[name])} x {name}" if len(times[name]) > 1 else name,
            totals[name] if None not in times[name] else None,
            "ns" if None not in times[name] else "",
            totals[name] / of if of and None not in times[name] else None,
        )
        for name in sorted(times, key=lambda name: (-totals[name], name))
    )
