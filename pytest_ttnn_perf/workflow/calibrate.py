"""A/A sessions: the same tests in one fresh process after another, nothing changed between."""

from __future__ import annotations

import time
from functools import partial
from math import expm1, log1p
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf.gate.policy import DEFAULT_POLICY
from pytest_ttnn_perf.gate.power import alarm_rate, noise_of, smallest_caught
from pytest_ttnn_perf.gate.ratios import band_of, centre_of
from pytest_ttnn_perf.model.assignment import PassKind
from pytest_ttnn_perf.model.calibration import Calibrated, Progress
from pytest_ttnn_perf.workflow.passes import Pass, Workers
from pytest_ttnn_perf.workflow.sessions import Hearing, Sessions, baselines_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pytest_ttnn_perf.model.message import Collected
    from pytest_ttnn_perf.model.observation import Observation

#: Logarithms beyond this have no exponential; as a change it means "beyond any measure".
_LARGEST_LOG: Final = 700.0


def run_sessions(
    workers: Workers,
    *,
    sessions: int,
    timeout_s: float,
    begin: Callable[[Collected], None],
    progress: Callable[[Progress], None],
) -> Sessions:
    """Measure the tests that ``workers`` collect, ``sessions`` times.

    ``begin`` is called once, before the first test runs. Ctrl-C, or a session that cannot be run
    after others could, ends it early and keeps what there is.

    Raises:
        UsageError: the tests cannot be collected or run at all.
    """
    found = Sessions(sessions)
    start_s = time.monotonic()

    def tell(number: int, done: int, tests: int | None) -> None:
        progress(Progress(number, sessions, done, tests, time.monotonic() - start_s))

    try:
        for number in range(1, sessions + 1):
            hearing = Hearing(found, number, partial(tell, number), begin)
            one = Pass(PassKind.CALIBRATE, workers, hearing, timeout_s)
            # The first session finds out which tests are measured; the others, and those that
            # have failed, cost time only.
            one.run(tuple(found.good()) if number > 1 else None)
            hearing.close(one.left)
            if found.stopped:
                break
            found.completed = number
            if not found.good():
                break
    except KeyboardInterrupt:
        found.stopped = "interrupted"
    return found


def calibrated(sessions: Sessions, *, confirm: int) -> Iterator[Calibrated]:
    """Yield what the sessions tell about every time and throughput, with ``confirm`` passes."""
    for test, seen in sessions.good().items():
        for name, baseline in baselines_of(seen).items():
            if not baseline.metric.compared_by_ratio:
                continue
            noise = noise_of(baseline)
            limit = band_of(baseline, seen[0].metrics[name].limits, policy=DEFAULT_POLICY).limit
            rate = caught = None
            if noise.between_sd is not None and noise.centre_sd is not None:
                seeing = {
                    "limit": limit,
                    "session_sd": noise.between_sd,
                    "centre_sd": noise.centre_sd,
                }
                rate = alarm_rate(**seeing, measurements=1 + confirm)
                caught = _fraction(smallest_caught(**seeing, measurements=1 + confirm))
            yield Calibrated(
                test=test,
                baseline=baseline,
                centre=centre_of(baseline),
                within=noise.within_sd,
                between=noise.between_sd,
                limit=_fraction(limit),
                false_alarms=rate,
                caught=caught,
            )


def too_noisy(seen: list[Observation]) -> str | None:
    """Return why a test could never pass against its sessions; None if it could."""
    for name, baseline in baselines_of(seen).items():
        if baseline.metric.compared_by_ratio:
            limits = seen[0].metrics[name].limits
            noise = band_of(baseline, limits, policy=DEFAULT_POLICY).noise
            if noise > log1p(max(DEFAULT_POLICY.too_noisy, limits.tolerance or 0.0)):
                return f"{name} is too noisy: noise alone reaches {_fraction(noise) * 100:.1f} %"
    return None


def _fraction(change: float) -> float:
    return expm1(min(change, _LARGEST_LOG))
