"""Time in which devices wait for the next op."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from pytest_ttnn_perf._base.text import percent
from pytest_ttnn_perf.analysis.checklist.host import gaps_of, longest_gaps
from pytest_ttnn_perf.analysis.checklist.rule import Rule, clean, found, limit, not_measured
from pytest_ttnn_perf.records.finding import Input, Severity

if TYPE_CHECKING:
    from pytest_ttnn_perf.analysis.checklist.rule import Answer
    from pytest_ttnn_perf.records.finding import Subject


@dataclass(frozen=True, slots=True)
class HostBound(Rule):
    """Devices wait for their next op.

    ## What it finds
    The share of the time that lies between the end of one kernel and the start of the next: inside
    replays of a trace, or else inside a window. The gap before the first op of a replay or window
    does not count; it belongs to what came before.

    ## Why it matters
    A device that waits does nothing. Faster kernels then make the gaps longer, not the model
    faster.

    ## What to do
    Capture a trace and replay it, so that the host no longer sends every op. Fuse small ops: a gap
    costs as much before a short kernel as before a long one. Move work of the host out of the
    model.

    ## When it is no problem
    Outside a replay the profiler itself makes gaps longer: the share is then an upper bound.
    Compare with TTP404, which knows the time without a profiler.

    ## Where it looks
    OP TO OP LATENCY and the kernel time of the op table. Without replays it looks at windows: the
    measured call of a test, the part that a capture was cut to, or what stands between the
    signposts NAME and NAME_END. A capture with neither is not measured: most of its gaps are
    compilation.
    """

    code: ClassVar[str] = "TTP401"
    name: ClassVar[str] = "host-bound"
    severity: ClassVar[Severity] = Severity.WARNING
    needs: ClassVar[tuple[Input, ...]] = (Input.OPS,)

    share: float = limit(
        0.2,
        unit="of the time",
        source="ttnn-visualizer-cli advises a trace above 20 %; real replays: 0 to 28 %",
    )

    def check(self, subject: Subject) -> Answer:
        """Compare the share of gaps with the limit."""
        assert subject.ops is not None
        gaps = gaps_of(subject)
        if isinstance(gaps, str):
            return not_measured(gaps)
        if gaps.share <= self.share:
            return clean(gaps.share, limit=self.share, unit="of the time", reason=gaps.caveat)
        told = f"devices wait {percent(gaps.share)} of the time for their next op, in {gaps.place}"
        return found(
            "; ".join(filter(None, [told, gaps.caveat])),
            value=gaps.share,
            limit=self.share,
            unit="of the time",
            evidence=longest_gaps(subject.ops, gaps),
        )
