"""The lines that are printed during a run, and what is said of its shift and its drift."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.text import counted
from pytest_ttnn_perf.records.verdict import DriftKind, Outcome
from pytest_ttnn_perf.report.numbers import format_change, format_fraction, format_value
from pytest_ttnn_perf.report.sentences import change_in_words

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_ttnn_perf.records.verdict import Drift, Drifting, Shift, Verdict


_CONFIRMED: Final = {
    Outcome.REGRESSED: "beyond its limit again",
    Outcome.SHIFTED: "only as slow as the machine",
}
#: From here on minutes say enough.
_MINUTES_FROM_S: Final = 120


def suspicion_line(test: str, suspects: Sequence[Verdict]) -> str:
    """Say that a test looks worse, and what happens now."""
    found = ", ".join(f"{v.metric.name} {change_in_words(v)}" for v in suspects)
    return f"ttnn-perf: {test}: {found}: to be measured again"


def device_pass_heading(tests: int, *, more_room: bool) -> str:
    """Say that tests are about to be profiled."""
    again = " again, with more room: the profiler dropped markers" if more_room else ""
    return f"ttnn-perf: device pass: profiling {counted(tests, 'test')}{again}"


def device_pass_line(*, done: int, of: int, left_s: float) -> str:
    """Say how far the device pass is."""
    left = f"{left_s:.0f} s" if left_s < _MINUTES_FROM_S else f"{left_s / 60:.0f} min"
    return f"ttnn-perf: device pass: {done} of {counted(of, 'test')}, about {left} left"


def confirm_heading(tests: int, controls: int, *, number: int, passes: int) -> str:
    """Say that a confirm pass begins."""
    what = [counted(tests, "test")] if tests else []
    what += [counted(controls, "control")] if controls else []
    again = f"measuring {' and '.join(what)} again in a fresh process"
    return f"ttnn-perf: confirm pass {number} of {passes}: {again}"


def controls_line(controls: int, move: float) -> str:
    """Say what tests that are not suspect show of the machine."""
    whose = "its baseline" if controls == 1 else "their baselines"
    return f"ttnn-perf: {counted(controls, 'control')}: {_way(move)} {whose}"


def shift_refuted_line(shift: Shift) -> str:
    """Say that it is not the machine after all."""
    moved = f"{shift.moved} of {counted(shift.voting, 'test')}"
    return f"ttnn-perf: not the environment: {moved} moved, and the controls did not"


def _way(move: float) -> str:
    if format_change(move) == format_change(0):
        return "as fast as"
    return f"{format_fraction(abs(move))} {'slower' if move > 0 else 'faster'} than"


def confirm_line(test: str, verdict: Verdict) -> str:
    """Say what measuring a suspect again has shown."""
    if verdict.outcome is Outcome.NO_DATA or not verdict.confirmed:
        return f"ttnn-perf: {test}: {verdict.metric.name} could not be confirmed"
    value = format_value(verdict.metric, verdict.confirmed[-1], beside=verdict.centre)
    then = format_value(verdict.metric, verdict.centre)
    result = _CONFIRMED.get(verdict.outcome, "within its limit now")
    return f"ttnn-perf: {test}: {verdict.metric.name} {value}, baseline {then}: {result}"


def shift_line(shift: Shift) -> str:
    """Say that the whole machine is slower or faster, by how much, and what differs."""
    return f"environment shifted: {shift_size(shift)}"


def shift_size(shift: Shift) -> str:
    """Say the same without its name."""
    way = "slower" if shift.worse else "faster"
    # A time that is 8 % shorter reads as 8 % faster; the gate reckons it as a ratio.
    size = format_fraction(abs(shift.change))
    moved = f"{shift.moved} of {counted(shift.voting, 'test')} moved the same way"
    differs = "; ".join(shift.differences) or "nothing that is recorded differs"
    return f"{size} {way} as a whole ({moved}); {differs}"


def shift_advice(shift: Shift, accept: str, *, failed: bool) -> Iterator[str]:
    """Say what a shift means for the run, and what to do; ``failed``: a test failed by name."""
    if shift.worse and not failed:
        yield "no single test failed, but none is known to have passed: exit code 6"
    yield "run it again on a machine in the state in which the baselines were accepted"
    yield "the machine, or a change that all tests share? compare in turns: ttnn-perf ab REF"
    yield f"if it should stay: {accept}"


def drift_line(drifting: Drifting) -> str:
    """Say what did not stay the same while it was measured."""
    drift, count = drifting.drift, drifting.count
    way = f"{format_fraction(abs(drift.change))} {'slower' if drift.change > 0 else 'faster'}"
    if drifting.metric is None:
        tests = counted(count, "test")
        return f"drift of the run: {way} against the baselines {_course(drift, tests)}"
    course = _course(drift, counted(count, "sample"))
    return (
        f"drift {drifting.test}: {drifting.metric} got {way} {course}: a clock or a temperature "
        "that had not settled; more warm-up may help"
    )


def _course(drift: Drift, all_of_them: str) -> str:
    if drift.kind is DriftKind.STEP:
        return f"after the first {drift.position} of {all_of_them}"
    return f"in the course of {all_of_them}"
