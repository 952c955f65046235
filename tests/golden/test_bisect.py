"""All that ``ttnn-perf bisect`` may say in the end, in every shape."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from pytest_ttnn_perf.core.metric import Better, Kind, Metric, Source
from pytest_ttnn_perf.core.observation import Outcome, Reason, Verdict
from pytest_ttnn_perf.experiments.bisect import (
    End,
    FollowedMetric,
    Found,
    State,
    Step,
    What,
    bisect_listing,
)
from pytest_ttnn_perf.experiments.paired import Comparison
from pytest_ttnn_perf.machine.repository import Commit
from tests.harness.golden import assert_golden

RATE = Metric("rate", "tok/s", Better.HIGHER, Kind.THROUGHPUT)
KERNEL = Metric("device_kernel_time", "ns", source=Source.DEVICE)
COMMITS = [
    Commit(
        f"{n}" * 40,
        f"{n}" * 7,
        f"Commit {n}",
        date=f"2026-11-1{n}T10:00:00+01:00",
        parents=("4" * 40, "a" * 40) if n == 5 else ("p",),
    )
    for n in range(6)
]
GOOD, BAD = COMMITS[0], COMMITS[-1]
FILE = Path("bisect") / "000-555.json"
WORDS = ["test_model.py", "-k", "a b"]
ASKED = ("--metric", "rate", "--rounds", "20", "--same", "ttnn", *WORDS)
#: A rate that falls to 10/11, which is a time that is 10 % longer.
FOLLOWED = FollowedMetric(
    "t.py::test_t", "rate", 0.1, 0.08, 0.12, 8, ("t.py::test_t", "t.py::test_u"), is_rate=True
)
STEPS = (
    Step(COMMITS[3].id, What.SLOW, 0.1, 0.07, 0.13, 6),
    Step(COMMITS[1].id, What.FAST, 0.0, -0.02, 0.02, 4),
    Step(COMMITS[2].id, What.UNDECIDED, 0.05, 0.02, 0.08, 50),
    Step(COMMITS[4].id, What.SKIPPED, why="t.py cannot be collected: ModuleNotFoundError"),
)


def effect(metric: Metric, outcome: Outcome, change: float, **more: object) -> Comparison:
    verdict = Verdict(metric, outcome, observed=110e6, centre=100e6, change=change, limit=0.03)
    if outcome is Outcome.TOO_NOISY:
        verdict = replace(verdict, reason=Reason.UNDECIDED)
    test = "t.py::test_t" if metric is RATE else "t.py::test_u"
    return Comparison(verdict, change - 0.02, change + 0.02, rounds=8, test=test, **more)  # type: ignore[arg-type]


WORSE = effect(RATE, Outcome.REGRESSED, 0.1)
BY_OP = effect(KERNEL, Outcome.REGRESSED, 0.1, by_op="+10.0 % (+10 ms) = Matmul +10 ms")
SAME = effect(KERNEL, Outcome.WITHIN, 0.0)
NOISY = effect(KERNEL, Outcome.TOO_NOISY, 0.02)


def found(end: End, suspects: slice, *effects: Comparison, **more: object) -> Found:
    known = {"state": State(FOLLOWED, STEPS, 60.0), **more}
    chosen = tuple(COMMITS[suspects])
    before = COMMITS[COMMITS.index(chosen[0]) - 1]
    return Found(end, GOOD, COMMITS[1:], suspects=chosen, before=before, effects=effects, **known)  # type: ignore[arg-type]


ENDS = {
    "found": found(End.FOUND, slice(3, 4), WORSE, BY_OP, SAME),
    "found_merge": found(End.FOUND, slice(5, 6), WORSE, state=State(FOLLOWED)),
    "range": found(End.RANGE, slice(2, 4), WORSE),
    "not_confirmed": found(End.NOT_CONFIRMED, slice(3, 4), NOISY),
    "not_slower": found(End.NOT_SLOWER, slice(1, 6), SAME, state=State()),
    "not_known": found(End.NOT_KNOWN, slice(1, 6), NOISY, state=State()),
    "interrupted": found(End.INTERRUPTED, slice(2, 4)),
    "stopped": found(End.INTERRUPTED, slice(2, 4), why="stopped in round 3 (a device hung)"),
    "interrupted_at_once": found(End.INTERRUPTED, slice(1, 6), state=State()),
}


def text(end: str) -> str:
    return bisect_listing(ENDS[end], ASKED, FILE).text("table").rstrip("\n")


def test_every_end() -> None:
    assert_golden("bisect_ends", "\n\n".join(f"# {end}\n{text(end)}" for end in ENDS))
