"""The calibrate command: A/A sessions of the same tests in fresh processes."""

from __future__ import annotations

import os
import time
from functools import partial
from math import hypot, log, log1p, sqrt
from statistics import NormalDist
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from pytest_ttnn_perf.core.assignment import PassKind
from pytest_ttnn_perf.core.errors import UsageError
from pytest_ttnn_perf.core.files import check_writable
from pytest_ttnn_perf.core.metric import Source
from pytest_ttnn_perf.core.text import counted
from pytest_ttnn_perf.experiments.paired import beyond, fraction
from pytest_ttnn_perf.experiments.rounds import (
    Session,
    Sessions,
    baselines_of,
    time_left,
)
from pytest_ttnn_perf.gate.ratios import MAD_TO_SIGMA, MEDIAN_ERROR, POLICY, band_of, centre_of
from pytest_ttnn_perf.plugin.preflight import lease
from pytest_ttnn_perf.plugin.workers import Pass
from pytest_ttnn_perf.report.tables import (
    DROPPED,
    METRIC,
    Column,
    Columns,
    Listing,
    Result,
    format_fraction,
    format_value,
    id_column,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pytest_ttnn_perf.core.baseline import MetricBaseline
    from pytest_ttnn_perf.core.observation import Limits
    from pytest_ttnn_perf.experiments.rounds import Experiment
    from pytest_ttnn_perf.plugin.workers import Workers
    from pytest_ttnn_perf.report.tables import Block


class MetricNoise(Struct, frozen=True):
    """One metric of one test, as fractions (0.05 = 5 %).

    ``false_alarms`` is a probability per run, ``caught`` the smallest regression that is caught in
    80 % of runs; None with fewer than two sessions. ``hides``: what noise alone reaches, where no
    gate would pass for that.
    """

    test: str
    baseline: MetricBaseline
    centre: float
    within: float
    between: float | None
    limit: float
    false_alarms: float | None = None
    caught: float | None = None
    hides: float | None = None

    @property
    def why_too_noisy(self) -> str:
        reach = f"{(self.hides or 0.0) * 100:.1f} %"
        return f"{self.baseline.metric.name} is too noisy: noise alone reaches {reach}"


def run_sessions(
    workers: Workers,
    sessions: int,
    progress: Callable[[int, int, int | None], None],
) -> Sessions:
    """Measure the tests that ``workers`` collect, ``sessions`` times.

    Ctrl-C, or a session that cannot be run after others could, ends it early and keeps what there
    is.
    """
    found = Sessions(sessions)
    try:
        for number in range(1, sessions + 1):
            session = Session(found, number, partial(progress, number))
            # The first session finds out which tests are measured; the others, and those that
            # have failed, cost time only.
            tests = tuple(found.good()) if number > 1 else None
            one = Pass(workers, PassKind.CALIBRATE, tests)
            session.run(one)
            session.close(one.left)
            if found.stopped:
                break
            found.completed = number
            if not found.good():
                break
    except KeyboardInterrupt:
        found.stopped = "interrupted"
    return found


def calibrate_metrics(sessions: Sessions, confirm: int) -> Iterator[MetricNoise]:
    for test, seen in sessions.good().items():
        for name, baseline in baselines_of(seen).items():
            if baseline.metric.compared_by_ratio:
                limits = seen[0].metrics[name].limits
                yield _noise_of(test, baseline, limits, measurements=1 + confirm)


def _noise_of(
    test: str, baseline: MetricBaseline, limits: Limits, *, measurements: int
) -> MetricNoise:
    sessions = baseline.current
    band, count = band_of(baseline, limits), len(sessions)
    logs = [log(session.median) for session in sessions]
    deviations = hypot(*(value - sum(logs) / count for value in logs))
    between = deviations / sqrt(count - 1) if count > 1 else None
    most = log1p(max(POLICY.too_noisy, limits.tolerance or 0.0))
    found = MetricNoise(
        test,
        baseline,
        centre_of(baseline),
        MAD_TO_SIGMA * sum(session.mad / session.median for session in sessions) / count,
        between,
        fraction(band.limit),
        hides=fraction(band.noise) if band.noise > most else None,
    )
    if between is None:
        return found
    # An hour shows nothing of how nights differ: as the gate does, take the prior. The baseline is
    # of one such night, and the run to judge of another.
    on_wall = baseline.metric.source is Source.WALL
    night = POLICY.prior_wall if on_wall else POLICY.prior_device
    centre = MEDIAN_ERROR * between / sqrt(count)
    # The mean of all measurements decides. What is new in each process averages out in it.
    sd = hypot(between / sqrt(measurements), centre, night, night)
    caught = fraction(band.limit + NormalDist().inv_cdf(_CAUGHT) * sd)
    return replace(found, false_alarms=beyond(band.limit, sd), caught=caught)


#: The share of runs that catch what is called caught.
_CAUGHT: Final = 0.8
#: A rate below this is told as below it: nobody could check a smaller one.
_LEAST_RATE: Final = 0.0001


def calibration_listing(
    rows: Sequence[MetricNoise], troubles: Mapping[str, str], *, remarks: Sequence[str]
) -> Listing:
    """Lay out a calibration; ``remarks`` follow the table."""
    lines: list[Block] = [*_COLUMNS.table(rows)]
    lines += [f"failed {test}: {why}" for test, why in troubles.items()]
    document = {
        "tests": _COLUMNS.objects(rows),
        "failed": dict(troubles),
        "remarks": list(remarks),
    }
    return Listing((*lines, *remarks), document, _COLUMNS.names, _COLUMNS.rows(rows))


def _percent(fraction: float | None) -> str:
    return "-" if fraction is None else f"{fraction * 100:.2f} %"


def _rate(rate: float | None) -> str:
    if rate is None:
        return "-"
    return f"< {_LEAST_RATE * 100:.2f} %" if rate < _LEAST_RATE else f"{rate * 100:.2f} %"


_COLUMNS: Final[Columns[MetricNoise]] = Columns(
    id_column(lambda r: r.test),
    Column("metric", lambda r: r.baseline.metric.name, "metric", fit=METRIC),
    Column("unit", lambda r: r.baseline.metric.unit),
    Column("sessions", lambda r: len(r.baseline.sessions)),
    Column("median", lambda r: r.centre, "median",
           lambda r: format_value(r.baseline.metric, r.centre), right=True, fit=DROPPED[1]),
    Column("within_sd", lambda r: r.within, "within", lambda r: _percent(r.within), right=True,
           fit=DROPPED[2]),
    Column("between_sd", lambda r: r.between, "between", lambda r: _percent(r.between), right=True,
           fit=DROPPED[3]),
    Column("limit", lambda r: r.limit, "limit",
           lambda r: format_fraction(r.baseline.metric.as_read(r.limit)), right=True),
    Column("false_alarm_rate", lambda r: r.false_alarms, "false alarms",
           lambda r: _rate(r.false_alarms), right=True),
    Column("smallest_caught", lambda r: r.caught, "caught in 80 %",
           lambda r: format_fraction(r.baseline.metric.as_read(r.caught)), right=True),
)  # fmt: skip


#: A spread that was estimated from fewer sessions is too small more often than not.
_ENOUGH: Final = 10


def calibrate(asked: Experiment, *, shape: str) -> Result:
    """Run A/A sessions, and lay out the noise of the tests."""
    settings, wanted = asked.settings, asked.rounds
    check_writable(settings.artifacts)
    workers = asked.workers(asked.cwd, lambda: asked.argv)
    start_s = time.monotonic()

    def report(number: int, done: int, of: int | None) -> None:
        part = min((number - 1 + (done / of if of else 0.0)) / wanted, 1.0)
        tests = "" if of is None else f", test {done} of {of}"
        left = f", about {time_left(start_s, part)} left" if part else ""
        asked.progress(f"session {number} of {wanted}{tests}{left}", done == of)

    with lease(settings, os.environ, asked.print_line):
        found = run_sessions(workers, wanted, report)
    if not (found.measured or found.troubles or found.stopped):
        raise UsageError(
            "no test was measured: mark tests with @pytest.mark.ttnn_perf, or name others"
        )
    # As workers know it, with pytest's options.
    given = found.collected["confirm"] if found.collected else None
    rows = list(calibrate_metrics(found, settings.confirm_passes if given is None else given))
    listing = calibration_listing(rows, found.troubles, remarks=[*_remarks(found, rows)])
    return Result(listing.text(shape), failed=bool(found.troubles or found.stopped))


def _remarks(found: Sessions, rows: Sequence[MetricNoise]) -> Iterator[str]:
    good = found.good()
    too_noisy = {row.test: row.why_too_noisy for row in reversed(rows) if row.hides is not None}
    tests = counted(len(good), "test")
    if found.stopped is None:
        yield f"{tests}, {counted(found.completed, 'session')} each"
    else:
        fewest = min(map(len, good.values()), default=0)
        yield f"{found.stopped}: {tests}, at least {fewest} of {found.wanted} sessions each"
    if min(map(len, good.values()), default=_ENOUGH) < _ENOUGH:
        yield f"fewer than {_ENOUGH} sessions: rates and what is caught look better than they are"
    if good:
        yield "all in one run: it is assumed that runs differ by 1.5 %, on a device by 0.5 %"
    for test, seen in good.items():
        if test in too_noisy:
            yield f"no gate would pass {test}: {too_noisy[test]}"
        if not baselines_of(seen):
            yield f"nothing to calibrate in {test}: what it records is not gated"
