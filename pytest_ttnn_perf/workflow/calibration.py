"""The calibrate command: sessions, what follows from them, and the baselines they become."""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from pytest_ttnn_perf._support.atomic import check_writable
from pytest_ttnn_perf._support.errors import UsageError
from pytest_ttnn_perf.baselines.store import BaselineStore
from pytest_ttnn_perf.device.host import host_environment, host_hardware
from pytest_ttnn_perf.model.baseline import Accepted, TestBaseline
from pytest_ttnn_perf.model.result import Result
from pytest_ttnn_perf.report.calibration import calibration_listing, progress_line
from pytest_ttnn_perf.report.numbers import counted
from pytest_ttnn_perf.workflow.calibrate import Sessions, baselines_of, calibrated, run_sessions
from pytest_ttnn_perf.workflow.passes import Workers

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from pytest_ttnn_perf.model.calibration import Progress
    from pytest_ttnn_perf.model.observation import Observation
    from pytest_ttnn_perf.model.settings import Settings


@dataclass(frozen=True, slots=True)
class Calibration:
    """What is asked for: pytest's words, how many sessions, and whether to store them."""

    words: Sequence[str]
    sessions: int
    write: bool
    here: Path


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
    if asked.write:
        check_writable(settings.baselines)
    name = f"calibrate-{datetime.now(timezone.utc):%Y%m%dT%H%M%SZ}-{secrets.token_hex(3)}"
    workers = Workers(
        arguments=lambda folder: [
            "-m", "pytest", "--ttnn-perf", "-o", f"cache_dir={folder / 'cache'}", *asked.words,
        ],
        cwd=asked.here,
        folder=settings.artifacts.absolute() / "passes" / name,
    )  # fmt: skip

    def tell(now: Progress) -> None:
        progress(progress_line(now), now.done == now.tests)

    found = run_sessions(
        workers, sessions=asked.sessions, timeout_s=settings.timeout, progress=tell
    )
    if not found.measured and not found.interrupted:
        message = "no test was measured: mark tests with @pytest.mark.ttnn_perf, or name others"
        raise UsageError(message)
    remarks = list(_remarks(found))
    if asked.write:
        remarks += _written(found, settings, asked)
    listing = calibration_listing(
        list(calibrated(found, confirm=settings.confirm)), found.troubles, remarks=remarks
    )
    return Result(listing.text(shape), failed=bool(found.troubles) or found.interrupted)


def _remarks(found: Sessions) -> list[str]:
    tests = counted(len(found.good()), "test")
    if not found.interrupted:
        return [f"{tests}, {counted(found.completed, 'session')} each"]
    fewest = min((len(seen) for seen in found.good().values()), default=0)
    return [f"interrupted: {tests}, at least {fewest} of {found.wanted} sessions each"]


def _written(found: Sessions, settings: Settings, asked: Calibration) -> list[str]:
    """Store the sessions as baselines; return what to say about it."""
    environment = host_environment(asked.here, now=datetime.now(timezone.utc))
    changes = {}
    for test, seen in found.good().items():
        accepted = Accepted(
            at=str(environment.started_at),
            commit=environment.commit and environment.commit[:12],
            reason=f"calibrated with {counted(len(seen), 'session')}",
            ttnn=environment.ttnn,
            environment=environment.lasting,
        )
        changes[test] = _replacement(seen, accepted)
    if not changes:
        return ["nothing was written"]
    store = BaselineStore(settings.baselines)
    files = store.amend(host_hardware(), changes)
    return [f"wrote {os.path.relpath(file, asked.here)}" for file in files]


def _replacement(
    seen: list[Observation], accepted: Accepted
) -> Callable[[TestBaseline | None], TestBaseline]:
    baseline = TestBaseline(accepted, baselines_of(seen), seen[0].setting)
    return lambda _: baseline
