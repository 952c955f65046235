"""The orchestrator's role: the pytest that the user started runs no test itself.

It starts workers, hears them, judges, and lets every other plugin see one ordinary session, as
pytest-xdist's controller does. It does not collect: in many projects that opens the device.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from pytest_ttnn_perf._support.errors import TtnnPerfError
from pytest_ttnn_perf.plugin.relay import Relay
from pytest_ttnn_perf.plugin.stream import live_logs
from pytest_ttnn_perf.workflow.confirm_passes import ConfirmPasses
from pytest_ttnn_perf.workflow.crew import Crew
from pytest_ttnn_perf.workflow.passes import Pass, Workers
from pytest_ttnn_perf.workflow.readiness import Touched, check_chips, check_untouched, lease

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from pytest_ttnn_perf.model.profile import ProfilerKind
    from pytest_ttnn_perf.plugin.gathering import Gathering
    from pytest_ttnn_perf.workflow.run import GateRun

#: What pytest-xdist would do here it does in the workers.
_DISTRIBUTION: Final[Mapping[str, object]] = {
    "numprocesses": None,
    "dist": "no",
    "distload": False,
    "tx": [],
}
_UNMEASURED: Final = "the run stopped before it was measured again"


@dataclass(eq=False)
class Orchestrator:
    """Runs the passes of a gated run."""

    gate: GateRun
    profiler: ProfilerKind
    gathering: Gathering
    processes: str | None = None
    touched: Touched = field(default_factory=Touched)

    def __post_init__(self) -> None:
        self.touched.watch()

    @pytest.hookimpl(tryfirst=True)
    def pytest_cmdline_main(self, config: pytest.Config) -> None:
        """Leave distributing to the workers."""
        self.processes = _processes(config.option)
        count = getattr(config.option, "numprocesses", None)
        try:
            check_chips(os.environ, processes=count if isinstance(count, int) else 0)
        except TtnnPerfError as error:
            raise pytest.UsageError(str(error)) from error
        for name, value in _DISTRIBUTION.items():
            if hasattr(config.option, name):
                setattr(config.option, name, value)

    def pytest_report_header(self, config: pytest.Config) -> list[str]:
        """Warn of what is about to make the numbers worse, and of what is left out for them."""
        lines = []
        if self.processes:
            lines.append(
                f"ttnn-perf: {self.processes}: wall times measured side by side are noisy; timed "
                "sections take turns, everything else runs beside them"
            )
        if config.pluginmanager.has_plugin("_cov"):
            lines.append("ttnn-perf: no coverage: it would slow down what is measured")
        return lines

    def pytest_collection(self) -> bool:
        """Do not collect."""
        return True

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run all tests in workers, and what looks slower again."""
        try:
            self._run(session)
        except TtnnPerfError as error:
            raise pytest.UsageError(str(error)) from error
        return True

    def _run(self, session: pytest.Session) -> None:
        relay = Relay(session, self.gate, self.gathering)
        check_untouched(self.touched, os.environ)
        say = relay.emitter.say
        with lease(self.gate.settings, os.environ, lambda text: say(f"ttnn-perf: {text}")):
            self._pass_over(session, relay)
        relay.release()
        relay.close()

    def _pass_over(self, session: pytest.Session, relay: Relay) -> None:
        settings, say = self.gate.settings, relay.emitter.say
        crew = Crew(settings, self.profiler, self._workers(session.config), say)
        if crew.has_device_pass:
            self._profile(crew)
        workers = crew.first()
        first = Pass(crew.first_kind, workers, relay, settings.timeout)
        try:
            first_pass_s = first.run(None)
            relay.give_up(
                first.left, first.stopped and f"was not started: one before it {first.stopped}"
            )
            if not (relay.stop or relay.ended_by or first.stopped):
                shifted = self.gate.assess_machine()
                if shifted is not None:
                    say(shifted)
                profiled = crew.profiled(more_room=False) if self.gate.profiled else None
                ConfirmPasses(self.gate, workers, say, profiled).run(
                    relay.held, first_pass_s=first_pass_s
                )
        finally:
            # Also after Ctrl-C: the record tells what was measured and what was not.
            for test in relay.held:
                if self.gate.in_question(test):
                    self.gate.cannot_confirm(test, _UNMEASURED)

    def _profile(self, crew: Crew) -> None:
        """Make the device pass; end the run if it leaves a device that no worker can use."""
        device = crew.device_pass()
        self.gate.profiled = device.run()
        self.gate.untold = device.untold
        if device.stopped is not None:
            for test in self.gate.profiled:
                self.gate.lose(test, f"was not started: {device.stopped}")
            self.gate.cut_short = device.stopped
            raise pytest.exit.Exception(f"ttnn-perf: {device.stopped}", returncode=1)

    def _workers(self, config: pytest.Config) -> Workers:
        return Workers(
            arguments=lambda folder: _arguments(config, folder),
            cwd=config.invocation_params.dir,
            folder=self.gate.passes_folder,
            shown=config.getoption("capture") != "fd" or live_logs(config) is not None,
        )


def _processes(option: argparse.Namespace) -> str | None:
    """Return how the user asked pytest-xdist to distribute; None if that was not asked."""
    count = getattr(option, "numprocesses", None)
    if count is not None:
        return f"-n {count}" if count else None
    asked = getattr(option, "distload", False) or getattr(option, "dist", "no") != "no"
    others = getattr(option, "tx", None) if asked else None
    return f"--tx {' '.join(others)}" if others else None


def _arguments(config: pytest.Config, folder: Path) -> list[str]:
    """Return what a worker is started with: the user's own words, and what keeps it apart."""
    words = [str(word) for word in config.invocation_params.args]
    own: list[str] = []
    if config.pluginmanager.has_plugin("cacheprovider"):
        cache = folder / "cache"
        kept = os.path.expandvars(Path(config.getini("cache_dir")).expanduser())
        _copy_cache(Path(config.rootpath, kept), cache)
        own += ["-o", f"cache_dir={cache}"]
    if config.pluginmanager.has_plugin("_cov"):
        own.append("--no-cov")
    seed = getattr(config.option, "randomly_seed", None)  # of pytest-randomly: all use the same
    if seed is not None:
        own.append(f"--randomly-seed={seed}")
    for plugin in config.invocation_params.plugins or ():
        own += ["-p", plugin] if isinstance(plugin, str) else []  # an object stays where it is
    # Whatever follows a bare "--" is a file.
    end = words.index("--") if "--" in words else len(words)
    return ["-m", "pytest", *words[:end], *own, *words[end:]]


def _copy_cache(cache: Path, copy: Path) -> None:
    """Let a worker know what failed last time, of which this session keeps the book."""
    if (cache / "v").is_dir():
        shutil.copytree(cache / "v", copy / "v")
