"""The worker's role: run tests, attach an observation to each call report, judge nothing."""

from __future__ import annotations

import inspect
import os
import sys
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from time import perf_counter_ns, time
from typing import TYPE_CHECKING, Final

import pytest

from pytest_ttnn_perf._base.errors import TtnnPerfError
from pytest_ttnn_perf._base.text import text_of
from pytest_ttnn_perf.device.host import on_this_host
from pytest_ttnn_perf.observe.instruments import error_text
from pytest_ttnn_perf.plugin import BEGAN, INSTRUMENTS, OBSERVER, OUT_OF_MEMORY, observer_for
from pytest_ttnn_perf.plugin.hook_calls import with_hardware
from pytest_ttnn_perf.plugin.reports import place_of
from pytest_ttnn_perf.plugin.settings import (
    NAME,
    is_marked,
    is_measured,
    is_parametrised,
    profiles_itself,
    test_settings,
)
from pytest_ttnn_perf.records.json import encode
from pytest_ttnn_perf.records.messages import APART, IDENTITY, OBSERVATION, Strayed
from pytest_ttnn_perf.records.observation import Observation
from pytest_ttnn_perf.records.settings import ProfilerKind

if TYPE_CHECKING:
    from collections.abc import Generator
    from contextlib import AbstractContextManager

    from pytest_ttnn_perf.observe.helpers.finder import HelperFinder
    from pytest_ttnn_perf.observe.helpers.self_profiling import SelfProfilingWatch
    from pytest_ttnn_perf.observe.instruments import Instruments
    from pytest_ttnn_perf.observe.observer import Observer
    from pytest_ttnn_perf.processes.channel import Interrupts, OrchestratorLink
    from pytest_ttnn_perf.records.messages import Assignment, ComparedVersions
    from pytest_ttnn_perf.records.settings import Settings


#: What needs no variables in the environment of the process.
_UNPROFILED: Final = frozenset({ProfilerKind.OFF, ProfilerKind.REALTIME})
#: With one of these set, tt-lang prints a profile after every call of a kernel.
_PROFILES: Final = ("TTLANG_PERF_DUMP", "TTLANG_AUTO_PROFILE", "TTLANG_SIGNPOST_PROFILE")
_NOTHING: Final = nullcontext()


@dataclass(eq=False)
class Worker:
    """Measures the tests of one process."""

    settings: Settings
    #: Held from the end of a measured call until its report is sent; None where nobody releases it.
    interrupts: Interrupts | None = None
    #: Whether this is another process than the one that the user started.
    is_apart: bool = False
    running: pytest.Item | None = None
    #: What a subtest of the running test failed with; the call of the test itself passes even so.
    failed_subtest: str | None = None
    printed: str = ""
    #: Observes the helpers that tests call; None where that is not wanted.
    helpers: HelperFinder | None = None
    #: Watches what processes tests start; None where there are no devices.
    watch: SelfProfilingWatch | None = None
    #: The tests that are known to start a profiled process of their own.
    apart: frozenset[str] = frozenset()

    def observe_helpers(
        self, instruments: Instruments, assignment: Assignment | None, *, beside_others: bool
    ) -> None:
        """Record what tests measure with helpers of their project."""
        from pytest_ttnn_perf.observe.helpers.finder import HelperFinder

        self.helpers = HelperFinder()
        if not instruments.knows_devices:
            return
        from pytest_ttnn_perf.observe.helpers.self_profiling import SelfProfilingWatch

        if assignment is not None and assignment.alone:  # what it opens is its own affair
            self.watch = SelfProfilingWatch(lambda: False)
            return
        self.apart = frozenset(assignment.apart) if assignment else frozenset()
        self.watch = SelfProfilingWatch(
            lambda: instruments.has_opened_device,
            profiled=assignment is not None and assignment.profiler not in _UNPROFILED,
            beside_others=beside_others,
            elsewhere=assignment is not None,
        )

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Refuse mistaken markers, and tests that would share a baseline, before anything runs."""
        for item in items:
            if is_measured(item, self.settings):
                test_settings(item, self.settings)
        parametrised = list(filter(is_parametrised, items))
        if parametrised:
            from pytest_ttnn_perf.plugin.identity import refuse_twins

            refuse_twins(parametrised, self.settings)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Start anew: a test that is run again must not add to what it observed before."""
        __tracebackhide__ = True
        self._leave_to_another(item)
        item.stash[BEGAN] = time()
        if OBSERVER in item.stash:
            del item.stash[OBSERVER]
        if OUT_OF_MEMORY in item.stash:
            del item.stash[OUT_OF_MEMORY]
        instruments = item.config.stash.get(INSTRUMENTS, None)
        if instruments is not None:
            instruments.begin(item.nodeid)

    def _leave_to_another(self, item: pytest.Item) -> None:
        """End a test before it begins that another worker is going to run."""
        __tracebackhide__ = True
        watch = self.watch
        if watch is None:
            return
        watch.stopped = False
        if not (watch.can_stop and watch.must_not_profile and is_measured(item, self.settings)):
            return
        if item.nodeid in self.apart or profiles_itself(item):
            watch.stop()

    @pytest.hookimpl(trylast=True)
    def pytest_unconfigure(self) -> None:
        """Leave the helpers as they were."""
        if self.helpers is not None:
            self.helpers.undo()

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        """Time tests that do not measure anything themselves. Innermost: nothing else is timed."""
        __tracebackhide__ = True
        observer = self._observer(item)
        self.running, self.failed_subtest = item, None
        whole = observer is not None and not _uses_fixture(item)
        began_s = time()
        try:
            with observer.turn if observer and whole else _NOTHING, self._output(item):
                self._begin_observing(observer)
                start = perf_counter_ns()
                result = yield
                elapsed_ns = perf_counter_ns() - start
                if observer and self.interrupts:
                    self.interrupts.hold()
        except BaseException:
            # What a test measured before it raised, as by an assertion of a helper, is kept.
            with suppress(TtnnPerfError):
                self._end_observing(item, observer, began_s)
            raise
        finally:
            self.running = None
        self._end_observing(item, observer, began_s)
        if observer and whole and observer.told_nothing:
            gated = is_marked(item) or self.settings.gate_call_time
            observer.whole_call(elapsed_ns, gated=gated)
        return result

    def _begin_observing(self, observer: Observer | None) -> None:
        if observer is not None and self.helpers is not None:
            self.helpers.begin(observer)
            if self.watch is not None:
                self.watch.begin(observer)

    def _end_observing(self, item: pytest.Item, observer: Observer | None, began_s: float) -> None:
        if observer is None:
            return
        if self.watch is not None:
            self.watch.end()
        try:
            if observer.profiles_itself or profiles_itself(item):
                observer.profiles_itself = True
                observer.attach_reports_since(began_s)
        finally:
            if self.helpers is not None:
                self.helpers.end()

    def _output(self, item: pytest.Item) -> AbstractContextManager[None]:
        """Keep what a test prints where pytest does not: with ``-s``."""
        self.printed = ""
        if item.config.getoption("capture") != "no" or not any(map(os.environ.get, _PROFILES)):
            return _NOTHING
        return self._kept_output()

    @contextmanager
    def _kept_output(self) -> Generator[None]:
        from pytest_ttnn_perf.measure.timing import kept_output

        with kept_output() as output:
            try:
                yield
            finally:
                self.printed = output.kept

    def _observer(self, item: pytest.Item) -> Observer | None:
        """Return the observer of a test that is measured.

        Made before the test runs: one that raises has left a record even so.
        """
        if not is_measured(item, self.settings):
            return None
        if not _is_async(item) or _uses_fixture(item):
            return observer_for(item)
        if not is_marked(item):
            return None  # taken in with all others: it runs, unmeasured
        observer_for(item)
        return pytest.fail(
            f"ttnn-perf cannot measure the async test {item.nodeid} as a whole: the event loop "
            "would be part of its time; use `await ttnn_perf.measure_async(...)` in it",
            pytrace=False,
        )

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Attach what a test observed to its call report.

        Not to those of its subtests, which are made while it runs, and not to that of a test that
        was skipped or failed as expected: it has no result. A test that cannot be set up has one,
        which says so: it must not vanish from the record.
        """
        report = yield
        if call.when == "setup" and is_measured(item, self.settings):
            self._identify(item, report)
        if self.watch is not None and self.watch.stopped and call.when != "teardown":
            return _left_to_another(report)
        if call.when != "teardown" and OUT_OF_MEMORY in item.stash:
            self._identify(item, report)
            _attach(report, self._on_this_host(with_hardware(item, _without_room(item))))
            return report
        observer = item.stash.get(OBSERVER, None)
        if observer is None and call.excinfo is None and report.passed:
            return report
        if call.excinfo is not None and call.excinfo.typename == "BdbQuit" and self.is_apart:
            # It quits at once: there is nobody to talk to.
            hint = "a debugger works with --ttnn-perf-isolate inline, or --pdb"
            report.sections.append(("ttnn-perf", hint))
        if call.when == "setup" and report.failed and is_measured(item, self.settings):
            lost = Observation(
                item.nodeid,
                raised=f"in its setup: {_raised(call, report)}",
                sweep=test_settings(item, self.settings).sweep,
            )
            _attach(report, lost)
        if observer is not None and report.failed and call.excinfo is not None:
            why = observer.instruments.explanation(text_of(call.excinfo.value))
            report.sections += [("ttnn-perf: memory", why)] if why else []
        is_over = call.when == "call" and self.running is not item
        if call.when == "call" and not is_over and report.failed:
            self.failed_subtest = f"in a subtest: {_raised(call, report)}"
        if is_over and observer is not None and report.outcome != "skipped":
            raised = _raised(call, report) if report.failed else self.failed_subtest
            observer.read_output(report.capstdout + report.capstderr or self.printed)
            self._identify(item, report)
            observed = with_hardware(item, observer.finish(raised=raised))
            _attach(report, self._on_this_host(observed))
        return report

    def _on_this_host(self, observation: Observation) -> Observation:
        """Name the machine, if keys do; a capture that was there before may be of any."""
        hardware, opened = observation.hardware, observation.configuration.values
        captured = any(observed.capture for observed in observation.metrics.values())
        if hardware is None or (captured and not opened):
            return observation
        here = on_this_host(hardware, self.settings.key, os.environ)
        return replace(observation, hardware=here)

    def _identify(self, item: pytest.Item, report: pytest.TestReport) -> None:
        """Say what a test is filed under: where tests are distributed, only reports tell it."""
        if is_parametrised(item):
            from pytest_ttnn_perf.plugin.identity import identity_of

            identity = identity_of(item, self.settings.identity_ignores)
            if identity != item.nodeid:
                setattr(report, IDENTITY, identity)


def _without_room(item: pytest.Item) -> Observation:
    """Return what is known of a point of a sweep that does not fit."""
    why = item.stash[OUT_OF_MEMORY]
    observation = observer_for(item).finish(raised=why)  # nothing more is asked of it
    return replace(observation, raised=None, out_of_memory=why)


def _left_to_another(report: pytest.TestReport) -> pytest.TestReport:
    """Return the report of a test that was stopped: no failure, nothing follows, nobody sees it."""
    file, line, _ = report.location
    report.outcome, report.sections = "skipped", []
    report.longrepr = (file, line or 0, "left to a worker of its own")
    vars(report).pop("wasxfail", None)
    setattr(report, APART, True)
    return report


def _attach(report: pytest.TestReport, observation: Observation) -> None:
    placed = replace(observation, location=place_of(report.location))
    setattr(report, OBSERVATION, encode(placed))


def _raised(call: pytest.CallInfo[None], report: pytest.TestReport) -> str:
    if call.excinfo is None:  # failed by a plugin, such as a strict xfail that passed
        return (str(report.longrepr).strip().splitlines() or ["an error"])[0]
    return error_text(call.excinfo.typename, text_of(call.excinfo.value))


def _is_async(item: pytest.Item) -> bool:
    function = getattr(item, "obj", None)
    return inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)


def _uses_fixture(item: pytest.Item) -> bool:
    return NAME in getattr(item, "fixturenames", ())


@dataclass(eq=False)
class StrayCheck:
    """Looks at what was loaded: before any test runs, and again for what tests have loaded."""

    link: OrchestratorLink
    versions: ComparedVersions

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Send what test files load, before anything is measured."""
        stop = self._send_strays(session)
        if stop is not None:
            session.shouldstop = stop

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Send what tests have loaded while they ran."""
        self._send_strays(session)

    def _send_strays(self, session: pytest.Session) -> str | None:
        from pytest_ttnn_perf.observe.strays import strays

        ours = (self.link.assignment.folder,)
        cwd = session.config.invocation_params.dir
        found = strays(dict(sys.modules), self.versions, cwd=cwd, ours=ours)
        return self.link.send(Strayed([list(stray) for stray in found])) if found else None
