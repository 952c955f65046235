"""Convolutions that take much longer than the device allows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ttnn_perf._base.text import counted, percent
from pytest_ttnn_perf.analysis.checklist.matmul_and_conv import (
    NO_CONVOLUTIONS,
    settings_to_try,
)
from pytest_ttnn_perf.analysis.checklist.op_times import op_name
from pytest_ttnn_perf.analysis.checklist.products import (
    best_known,
    convolutions_of,
    no_roofline,
    shortfall_ns,
)
from pytest_ttnn_perf.analysis.checklist.rule import Answer, Limit, rule
from pytest_ttnn_perf.analysis.checklist.savings import WORTH, check_savings, microseconds
from pytest_ttnn_perf.records.finding import Input, Severity

if TYPE_CHECKING:
    from pytest_ttnn_perf.analysis.checklist.savings import Placed
    from pytest_ttnn_perf.records.ops import OpTable


@rule("TTP607", "low-conv-efficiency", Severity.WARNING, Input.OPS)
def low_conv_efficiency(
    step: OpTable,
    *,
    share: Limit = Limit(0.02, "of a step", WORTH),
    efficiency: Limit = Limit(
        0.5, "of the roofline", "ttnn-visualizer-cli calls less low; real: 9 to 68 %"
    ),
) -> Answer:
    """Convolutions take much longer than they have to.

    ## What it finds
    Convolutions that take more than twice what the chip allows: the longer of reading their
    operands from DRAM, and of computing on the cores that they run on, at their fidelity.

    ## Why it matters
    Convolutions are most of the work of a vision model. What they fall short of can be gained.

    ## What to do
    Begin with the convolutions that are named, which lose most time, and with the settings named
    beside them: a sharding that goes with the shape, a larger `act_block_h_override`, double
    buffering, weights in bfloat8_b.

    ## What it saves
    The time of the convolution, less twice what it takes at full speed.

    ## When it is no problem
    Small convolutions end before the device is up to speed.

    ## Where it looks
    Operands, CORE COUNT, MATH FIDELITY, DEVICE ARCH and the kernel time of the op table, on the
    slowest device. The products are those that the engine computes: all rows of the weights as
    they are laid out, so that channels that are padded count. Where DEVICE ARCH is missing, PM
    IDEAL stands in for the roofline, or what the cores in use would take on the fastest chip that
    is known, if that is longer: PM IDEAL counts all cores of a chip. The settings are those of
    ATTRIBUTES; `act_block_h` is in rows, of those that a core has.
    """
    convolving = convolutions_of(step)
    if not convolving:
        return Answer.not_applicable(NO_CONVOLUTIONS)
    if all(each.least_ns is None for each in convolving):
        return Answer.not_measured(no_roofline(step, "convolution"))
    slow = [each for each in convolving if shortfall_ns(each, efficiency.value)]
    took = sum(each.op.kernel_ns for each in slow)
    saved = {each.row: shortfall_ns(each, efficiency.value) for each in slow}
    reached = sum(each.least_ns or 0.0 for each in slow) / took if took else 1.0
    return check_savings(
        step,
        saved,
        share,
        sentence=f"{counted(len(slow), 'convolution')} at {percent(reached)} of {best_known(step)}",
        arithmetic=f"{microseconds(took)} − {microseconds(took - sum(saved.values()))} at "
        f"{percent(efficiency.value)} of {best_known(step)}",
        name=_named,
    )


def _named(placed: Placed) -> str:
    settings = settings_to_try(placed.op)
    return f"{op_name(placed.op)} ({settings})" if settings else op_name(placed.op)
