"""Taking up work: which role this process plays."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
from msgspec.structs import replace

from pytest_ttnn_perf.core import wings
from pytest_ttnn_perf.core.assignment import PassKind
from pytest_ttnn_perf.core.errors import TtnnPerfError
from pytest_ttnn_perf.core.settings import Checklist, Isolate, ProfilerKind
from pytest_ttnn_perf.plugin.emit import Extensions
from pytest_ttnn_perf.plugin.settings import settings_of
from pytest_ttnn_perf.plugin.wire import ROLE, SHARE, WORKER, read_assignment, take_link

if TYPE_CHECKING:
    import argparse

    from pytest_ttnn_perf.core.assignment import Assignment
    from pytest_ttnn_perf.core.settings import Settings, Update
    from pytest_ttnn_perf.plugin.wire import OrchestratorLink
    from pytest_ttnn_perf.report.sentences import Rerun

# A process has one role: what only another one needs is not imported.


class OtherRank:
    """Says that this process measures and is not asked what it found."""

    def __init__(self, rank: tuple[int, int]) -> None:
        self.rank = "rank {} of {}".format(*rank)

    def pytest_report_header(self) -> str:
        return f"ttnn-perf: {self.rank}: measured here, judged and written by rank 0"


#: The modules behind the doors of ``core/wings.py``.
WINGS: Final = {
    "captures": "pytest_ttnn_perf.analysis.readers.attach",
    "findings": "pytest_ttnn_perf.analysis.checklist.runner",
    "changes": "pytest_ttnn_perf.analysis.show.attribution",
    "history": "pytest_ttnn_perf.history",
    "host": "pytest_ttnn_perf.experiments.host",
    "rounds": "pytest_ttnn_perf.experiments.ab",
}

#: Options that need the tests in this process, by their names in pytest's namespace.
_DEBUGGING: Final = {"usepdb": "--pdb", "trace": "--trace"}
#: Passes of which nothing but the samples is kept.
_SAMPLES_ONLY: Final = frozenset({PassKind.CONFIRM, PassKind.CALIBRATE, PassKind.AB, PassKind.HOST})
_LOOKING: Final = ("collectonly", "setuponly", "setupshow", "setupplan")


def activate(config: pytest.Config) -> None:
    wings.register(f"{__name__}:WINGS")
    try:
        link, share = take_link(os.environ), os.environ.pop(SHARE, None)
        shared = read_assignment(Path(share)) if share else None
    except TtnnPerfError as error:
        raise pytest.UsageError(str(error)) from error
    versions = link.assignment.versions if link else None
    settings = settings_of(config, root=versions.settings if versions else None)
    config.pluginmanager.register(Extensions(settings), "ttnn_perf_extensions")
    if link is not None:
        _work(config, settings, link)
    elif shared is not None:
        _share(config, settings, shared)
    else:
        from pytest_ttnn_perf.machine.chips import rank_of

        rank = rank_of(os.environ)
        if rank is None or rank[0] == 0:
            _lead(config, settings, rank)
            return
        from pytest_ttnn_perf.plugin.worker import Worker

        _name_role(config, "inline")
        config.pluginmanager.register(Worker(settings, ProfilerKind.OFF), "ttnn_perf_worker")
        config.pluginmanager.register(OtherRank(rank), "ttnn_perf_rank")


def _name_role(config: pytest.Config, role: str) -> None:
    """Name the role in the environment, for conftest files."""
    environment = pytest.MonkeyPatch()
    environment.setenv(ROLE, role)
    config.add_cleanup(environment.undo)


def _share(config: pytest.Config, settings: Settings, share: Assignment) -> None:
    from pytest_ttnn_perf.plugin.preflight import take_share
    from pytest_ttnn_perf.plugin.worker import AssignedTests, Worker

    _name_role(config, WORKER)
    try:
        own, chip = take_share(os.environ, share.folder)
        if chip is not None:
            config.add_cleanup(chip.release)
        config.pluginmanager.register(AssignedTests(share, own), "ttnn_perf_assigned")
        worker = Worker(settings, share.profiler, share, own=own)
    except TtnnPerfError as error:
        raise pytest.UsageError(str(error)) from error
    config.pluginmanager.register(worker, "ttnn_perf_worker")


def _work(config: pytest.Config, settings: Settings, link: OrchestratorLink) -> None:
    from pytest_ttnn_perf.plugin.worker import PRINTING, AssignedTests, SessionForwarder, Worker

    _name_role(config, WORKER)
    assignment, versions = link.assignment, link.assignment.versions
    if versions is not None:
        # Two versions must not leave their reports in one place.
        settings = replace(settings, artifacts=assignment.folder)
    if assignment.kind in _SAMPLES_ONLY and not (versions and versions.checklist):
        settings = replace(settings, checklist=Checklist.OFF)
    if _is_distributed(config) and not assignment.alone:
        os.environ[SHARE] = str(link.file)
    for name in filter(config.pluginmanager.has_plugin, PRINTING):
        config.pluginmanager.unregister(name=name)
    if not assignment.cwd_on_path and sys.path[:1] == [str(config.invocation_params.dir)]:
        del sys.path[0]  # put there by `python -m pytest`, which the user did not run
    stream = SessionForwarder(link)
    worker = Worker(settings, assignment.profiler, assignment, stream)
    config.pluginmanager.register(AssignedTests(assignment), "ttnn_perf_assigned")
    config.pluginmanager.register(worker, "ttnn_perf_worker")
    config.pluginmanager.register(stream, "ttnn_perf_stream")


def _lead(config: pytest.Config, settings: Settings, rank: tuple[int, int] | None) -> None:
    from pytest_ttnn_perf.gate.gated_run import GateRun
    from pytest_ttnn_perf.gate.judging import DeviceResults
    from pytest_ttnn_perf.gate.record import RunContext, ci_job, of_split
    from pytest_ttnn_perf.plugin import orchestrator
    from pytest_ttnn_perf.plugin.emit import TestCollection
    from pytest_ttnn_perf.plugin.preflight import check_paths, choose_profiler, has_devices
    from pytest_ttnn_perf.report.run import RunReport

    isolated = _is_isolated(config, settings, rank)
    _name_role(config, "orchestrator" if isolated else "inline")
    # Options are not parsed for good before conftest files are loaded.
    known = config.known_args_namespace
    if not isolated and (getattr(known, "forked", False) or _is_distributed(config)):
        message = "--ttnn-perf measures in this process alone: run it without -n, --tx, --forked"
        raise pytest.UsageError(message + ", or with --ttnn-perf-isolate process")
    group, splits = (getattr(known, name, None) for name in ("group", "splits"))
    job = of_split(ci_job(os.environ, config.rootpath), group=group, splits=splits)
    try:
        check_paths(settings)
        choice = choose_profiler(settings, os.environ, isolated=isolated)
    except TtnnPerfError as error:
        raise pytest.UsageError(str(error)) from error
    context = RunContext(
        settings,
        project=config.rootpath,
        cwd=config.invocation_params.dir,
        job=job,
        isolated=isolated,
        profiler=str(choice),
        has_devices=has_devices(os.environ),
    )
    gate = GateRun(context, DeviceResults(unknown=choice.why if choice.guessed else None))
    run = RunReport(
        gate,
        _rerun(config, settings.update),
        # With `-p no:terminal` there is no such option.
        verbose=getattr(config.known_args_namespace, "verbose", 0) > 0,
    )
    register = config.pluginmanager.register
    collection = TestCollection(config)
    register(collection, "ttnn_perf_gathering")
    register(orchestrator.RunSummary(run), "ttnn_perf_closing")
    if isolated:
        # Of pytest-cov: there is nothing to cover here, and nothing is covered in the workers.
        config.known_args_namespace.no_cov = True
        register(orchestrator.Orchestrator(run, choice.kind, collection), "ttnn_perf_orchestrator")
        return
    from pytest_ttnn_perf.plugin.worker import Worker

    register(Worker(settings, choice.kind), "ttnn_perf_worker")
    register(orchestrator.InlineJudge(run, collection), "ttnn_perf_inline")


def _is_isolated(config: pytest.Config, settings: Settings, rank: tuple[int, int] | None) -> bool:
    """Return whether tests run in workers; a launcher's process has none."""
    if rank is not None:
        if settings.isolate is Isolate.PROCESS:
            which = f"rank {rank[0]} of {rank[1]}"
            message = f"--ttnn-perf-isolate process: this is {which} of a launcher: it starts no"
            raise pytest.UsageError(f"{message} workers")
        return False
    options = config.known_args_namespace
    debugging = [text for name, text in _DEBUGGING.items() if getattr(options, name, False)]
    if settings.isolate is Isolate.PROCESS and debugging:
        message = f"{debugging[0]} works in this process only: use --ttnn-perf-isolate inline"
        raise pytest.UsageError(message)
    looking = any(getattr(options, name, False) for name in _LOOKING)
    return settings.isolate is not Isolate.INLINE and not debugging and not looking


def distribution_of(options: argparse.Namespace) -> str | None:
    count = getattr(options, "numprocesses", None)
    if count is not None:  # has the last word, also with 0
        return f"-n {count}" if count else None
    asked = getattr(options, "distload", False) or getattr(options, "dist", "no") != "no"
    others = getattr(options, "tx", None) if asked else None
    return f"--tx {' '.join(others)}" if others else None


def leave_undistributed(options: argparse.Namespace) -> None:
    """Make pytest-xdist hand out nothing."""
    undistributed: dict[str, object] = {
        "numprocesses": None,
        "dist": "no",
        "distload": False,
        "tx": [],
    }
    for name, value in undistributed.items():
        if hasattr(options, name):
            setattr(options, name, value)


def _is_distributed(config: pytest.Config) -> bool:
    options = config.known_args_namespace
    return not options.collectonly and distribution_of(options) is not None


def _rerun(config: pytest.Config, update: Update | None) -> Rerun:
    from pytest_ttnn_perf.report.sentences import Rerun

    folder = os.path.relpath(config.rootpath, config.invocation_params.dir)
    given = vars(config.known_args_namespace)
    options = tuple(
        word
        for name in ("baselines", "replay")
        if (value := given[f"ttnn_perf_{name}"]) is not None
        for word in (f"--ttnn-perf-{name}", value)
    )
    selection = tuple(map(str, given["file_or_dir"] or ()))
    folder = "" if folder == "." else folder
    script: tuple[str, ...] = ()
    if given["ttnn_perf_script"] is not None:
        from pytest_ttnn_perf.plugin.script import script_of

        script = script_of(given["ttnn_perf_script"]).typed
    return Rerun(folder, options, selection, update=update, script=script)
