"""Calls that do not all run the same ops on the same shapes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.text import counted
from pytest_ttnn_perf.analysis.checklist.measurements import is_on, settings_of
from pytest_ttnn_perf.analysis.checklist.op_times import differences, executions
from pytest_ttnn_perf.analysis.checklist.rule import Answer, Limit, rule
from pytest_ttnn_perf.records.finding import Evidence, Input, Severity, Subject

if TYPE_CHECKING:
    from pytest_ttnn_perf.records.ops import OpTable

_ONCE: Final = (
    "nothing ran twice: needs two replays of a trace, or two windows of one name (NAME … NAME_END)"
)
_NONE: Final = Limit(0, "executions that differ", "a trace holds one shape")


@rule("TTP403", "dynamic-shapes", Severity.WARNING, Input.OPS)
def dynamic_shapes(subject: Subject, ops: OpTable) -> Answer:
    """Calls of a model do not all do the same.

    ## What it finds
    Replays of a trace, or calls of a model, that differ from the first of their kind in an op or in
    the shape, format, layout or memory of its operands.

    ## Why it matters
    A new shape is a new program, which is compiled in the middle of the run. And a trace holds
    fixed shapes only.

    ## What to do
    Pad inputs to one size, or to a few sizes with a trace for each. Keep what depends on data, such
    as the position in a sequence, in tensors instead of in shapes.

    ## When it is no problem
    Phases that are different by nature, such as prefill and decode: give them signposts of
    different names.

    ## Where it looks
    The op codes and operands of the op table: replays by METAL TRACE REPLAY SESSION ID, calls by
    signposts NAME and NAME_END of one name, by those that the plugin sets around every measured
    call under Tracy, or by the window that was asked for, if it is there several times. The fact
    `dynamic_shapes` states it outright. Replays of which some lack ops lost data, which is for
    TTP002 to say: they are not measured here.
    """
    if is_on(settings_of(subject).get("dynamic_shapes")):
        return Answer.found("the test states that its shapes change from call to call")
    runs = executions(ops)
    if not runs:
        return Answer.not_measured(_ONCE)
    differing = list(differences(ops))
    lost = next((d for d in differing if d.what.endswith("replay") and not d.same_ops), None)
    if lost is not None:
        return Answer.not_measured(f"replays are not complete (TTP002): {lost}")
    compared = sum(map(len, runs.values())) - len(runs)
    return _NONE.at_most(
        len(differing),
        f"different from the first: {len(differing)} of {counted(compared, 'repeated execution')}",
        (Evidence(str(difference)) for difference in differing),
    )
