"""The calibrate command: sessions, what follows from them, and the baselines they become."""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._support.atomic import check_writable
from pytest_ttnn_perf._support.errors import TtnnPerfError, UsageError
from pytest_ttnn_perf._support.wording import counted
from pytest_ttnn_perf.baselines.store import BaselineStore
from pytest_ttnn_perf.device.host import host_hardware
from pytest_ttnn_perf.device.variables import worker_variables
from pytest_ttnn_perf.gate.judge import judge_test
from pytest_ttnn_perf.gate.statistics import median
from pytest_ttnn_perf.model.baseline import Accepted, TestBaseline
from pytest_ttnn_perf.model.result import Result
from pytest_ttnn_perf.model.verdict import Outcome
from pytest_ttnn_perf.report.calibration import calibration_listing, progress_line
from pytest_ttnn_perf.report.sentences import sentence
from pytest_ttnn_perf.workflow.calibrate import calibrated, run_sessions, too_noisy
from pytest_ttnn_perf.workflow.passes import Workers
from pytest_ttnn_perf.workflow.provenance import environment_of
from pytest_ttnn_perf.workflow.readiness import lease
from pytest_ttnn_perf.workflow.sessions import Sessions, baselines_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pytest_ttnn_perf.model.calibration import Progress
    from pytest_ttnn_perf.model.hardware import Hardware
    from pytest_ttnn_perf.model.message import Collected
    from pytest_ttnn_perf.model.observation import Observation
    from pytest_ttnn_perf.model.settings import Settings


#: A spread that was estimated from fewer sessions is too small more often than not.
_ENDED: Final = True
_ENOUGH: Final = 10


@dataclass(frozen=True, slots=True)
class Calibration:
    """What is asked for: pytest's words, how many sessions, whether and where to store them.

    ``baselines`` is None for where the tests' own pytest has them. ``reason`` accepts what is worse
    than the baseline that it replaces.
    """

    words: Sequence[str]
    sessions: int
    write: bool
    baselines: Path | None
    here: Path
    reason: str | None = None


def calibrate(
    asked: Calibration, settings: Settings, *, progress: Callable[[str, bool], None], shape: str
) -> Result:
    """Run A/A sessions and say what they tell.

    ``progress`` is told in a line how far it is, and whether a session has just ended.

    Raises:
        UsageError: no test can be measured.
        InputError, WriteError: the baselines cannot be read or written.
    """
    check_writable(settings.artifacts)
    name = f"calibrate-{datetime.now(timezone.utc):%Y%m%dT%H%M%SZ}-{secrets.token_hex(3)}"
    workers = Workers(
        arguments=lambda folder: [
            "-m", "pytest", "--ttnn-perf", "-o", f"cache_dir={folder / 'cache'}", *asked.words,
        ],
        cwd=asked.here,
        folder=settings.artifacts.absolute() / "passes" / name,
        variables=partial(worker_variables, os.environ),
    )  # fmt: skip

    def begin(collected: Collected) -> None:
        if asked.write:
            _check_baselines(_completed(settings, asked, collected).baselines, collected.tests)

    def tell(now: Progress) -> None:
        progress(progress_line(now), now.done == now.tests)

    with lease(settings, os.environ, lambda text: progress(text, _ENDED)):
        found = run_sessions(
            workers, sessions=asked.sessions, timeout_s=settings.timeout, begin=begin, progress=tell
        )
    if not (found.measured or found.troubles or found.stopped):
        message = "no test was measured: mark tests with @pytest.mark.ttnn_perf, or name others"
        raise UsageError(message)
    settings = _completed(settings, asked, found.collected)
    remarks, written = list(_remarks(found)), True
    if asked.write:
        said, written = _written(found, settings, asked)
        remarks += said
    rows = list(calibrated(found, confirm=settings.confirm))
    listing = calibration_listing(rows, found.troubles, remarks=remarks)
    failed = bool(found.troubles or found.stopped) or not written
    return Result(listing.text(shape), failed=failed)


def _completed(settings: Settings, asked: Calibration, collected: Collected | None) -> Settings:
    """Return the settings with what the options and the configuration of the workers say.

    They know pytest's root folder, and all options that are not this command's.
    """
    if collected is not None and collected.confirm is not None:
        settings = replace(settings, confirm=collected.confirm)
    if asked.baselines is not None:
        return replace(settings, baselines=asked.baselines)
    if collected is not None and collected.baselines is not None:
        return replace(settings, baselines=Path(collected.baselines))
    return settings


def _check_baselines(folder: Path, tests: Sequence[str]) -> None:
    """Find out before any test runs whether its sessions could be stored."""
    check_writable(folder)
    BaselineStore(folder).preload(tests)


def _remarks(found: Sessions) -> Iterator[str]:
    good = found.good()
    tests = counted(len(good), "test")
    if found.stopped is None:
        yield f"{tests}, {counted(found.completed, 'session')} each"
    else:
        fewest = min(map(len, good.values()), default=0)
        yield f"{found.stopped}: {tests}, at least {fewest} of {found.wanted} sessions each"
    if min(map(len, good.values()), default=_ENOUGH) < _ENOUGH:
        yield f"fewer than {_ENOUGH} sessions: rates and what is caught look better than they are"
    for test, seen in good.items():
        noisy = too_noisy(seen)
        if noisy is not None:
            yield f"no gate would pass {test}: {noisy}"
        if not baselines_of(seen):
            yield f"nothing to calibrate in {test}: what it records is not gated"


def _written(found: Sessions, settings: Settings, asked: Calibration) -> tuple[list[str], bool]:
    """Store the sessions as baselines; return what to say about it, and whether all went well."""
    environment = environment_of(asked.here)
    store = BaselineStore(settings.baselines)
    changes: dict[Hardware, dict[str, Callable[[TestBaseline | None], TestBaseline]]] = {}
    refused = []
    for test, seen in found.good().items():
        metrics = baselines_of(seen)
        noisy = too_noisy(seen)
        if noisy is not None:
            refused.append(f"not written {test}: {noisy}; quiet the machine, or take more samples")
            continue
        worse = None if asked.reason else _worse(seen, store, test)
        if worse is not None:
            refused.append(f'not written {test}: {worse}; accept it with --reason "why"')
            continue
        accepted = Accepted(
            at=str(environment.started_at),
            commit=environment.commit and environment.commit[:12],
            reason=asked.reason or f"calibrated with {counted(len(seen), 'session')}",
            ttnn=environment.ttnn,
            environment=environment.lasting,
        )
        if metrics:
            hardware = seen[0].hardware or host_hardware()
            baseline = TestBaseline(accepted, metrics, seen[0].setting, op_table=seen[-1].ops)
            changes.setdefault(hardware, {})[test] = _replacement(baseline)
    if not changes:
        return [*refused, "nothing was written"], False
    try:
        files = [file for key, tests in changes.items() for file in store.amend(key, tests)]
    except TtnnPerfError as error:  # the table is worth hours all the same
        return [*refused, f"not written: {error}"], False
    wrote = [f"wrote {os.path.relpath(file, asked.here)}" for file in files]
    return [*refused, *wrote], not refused


def _worse(seen: Sequence[Observation], store: BaselineStore, test: str) -> str | None:
    """Return what is worse in the sessions of a test than in its baseline; None for nothing."""
    try:
        stored = store.find(seen[-1].hardware or host_hardware(), test)
    except TtnnPerfError as error:  # damaged since it was looked at
        return str(error)
    if stored is None:
        return None
    metrics = {
        name: replace(observed, samples=tuple(median(each.metrics[name].samples) for each in seen))
        if observed.metric.compared_by_ratio and all(name in each.metrics for each in seen)
        else observed
        for name, observed in seen[-1].metrics.items()
    }
    verdicts = judge_test(replace(seen[-1], metrics=metrics), stored)
    worse = (sentence(v) for v in verdicts if v.outcome is Outcome.REGRESSED)
    return next(worse, None)


def _replacement(baseline: TestBaseline) -> Callable[[TestBaseline | None], TestBaseline]:
    return lambda _: baseline
