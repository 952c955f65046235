"""Checks before any test of a run is measured."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from pytest_ttnn_perf.core import wings
from pytest_ttnn_perf.core.errors import InputError, UsageError, WriteError
from pytest_ttnn_perf.core.files import check_writable
from pytest_ttnn_perf.core.settings import BrokerUse, PassChoice, ProfilerKind
from pytest_ttnn_perf.machine.chips import ChipWatch, lock_folder, take, take_one, visible_chips
from pytest_ttnn_perf.machine.environment import devices_of, is_simulated
from pytest_ttnn_perf.machine.processes import interpreter
from pytest_ttnn_perf.machine.ttnn import ttnn_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, MutableMapping

    from pytest_ttnn_perf.core.settings import Settings
    from pytest_ttnn_perf.machine.chips import Lease
    from pytest_ttnn_perf.machine.inspection import Build


#: Those that need a pass of their own, and a build with Tracy: they slow down what they look at.
OWN_PASS: Final = frozenset({ProfilerKind.DEVICE, ProfilerKind.TRACY, ProfilerKind.TTLANG})


class ProfilerChoice(Struct, frozen=True):
    """A profiler that is not AUTO, and the reason in few words.

    ``guessed``: ttnn did not say what it can do, so a device that a test opens may have times.
    """

    kind: ProfilerKind
    why: str
    guessed: bool = False

    def __str__(self) -> str:
        return f"profiler {self.kind.value} ({self.why})"


def choose(
    asked: ProfilerKind, build: Build | None, environment: Mapping[str, str]
) -> ProfilerChoice:
    if asked is ProfilerKind.OFF:
        return ProfilerChoice(asked, "as asked")
    why_not = _why_not(build, environment)
    if why_not is not None:
        if asked is not ProfilerKind.AUTO:
            message = f"--ttnn-perf-profiler {asked.value}: {why_not}; use auto, or off"
            raise UsageError(message)
        guessed = build is not None and build.problem is not None
        guessed = guessed and not is_simulated(environment)
        return ProfilerChoice(ProfilerKind.OFF, why_not, guessed=guessed)
    assert build is not None
    without = f"ttnn {build.version} is built without Tracy"
    if asked is ProfilerKind.AUTO:
        if build.tracy:
            return ProfilerChoice(ProfilerKind.DEVICE, f"ttnn {build.version} is Tracy-enabled")
        return ProfilerChoice(ProfilerKind.REALTIME, without)
    if asked in OWN_PASS and not build.tracy:
        fix = "use realtime, or a Tracy-enabled build"
        message = f"--ttnn-perf-profiler {asked.value}: {without}; {fix}"
        raise UsageError(message)
    return ProfilerChoice(asked, "as asked")


def _why_not(build: Build | None, environment: Mapping[str, str]) -> str | None:
    if build is None or build.version is None:
        return "no ttnn is installed"
    if build.timed_out:
        return f"not known whether ttnn can profile: it {build.problem}; set preflight_timeout"
    if build.problem is not None:
        return f"ttnn cannot be used: {build.problem}"
    if is_simulated(environment):
        return "a simulated device has no times"
    return "no device was found" if build.arch is None else None


#: There is one for each process: another that ended must only let go of its own.
_FREE_CHIP_S: Final = 60.0


def check_paths(settings: Settings) -> None:
    if settings.select or settings.ignore or settings.rules:
        wings.findings.select_rules(settings.select, settings.ignore, settings.rules)
    if settings.history is not None:
        from pytest_ttnn_perf.core.settings import check_installed

        check_installed(settings.history)
    if settings.targets is not None:
        from pytest_ttnn_perf.gate.targets import read_targets

        read_targets(settings.targets)
    if settings.replay is not None and not settings.replay.is_dir():
        found = "a file" if settings.replay.exists() else "nothing"
        raise InputError(settings.replay, f"expected a folder of recorded artifacts, found {found}")
    for folder in filter(None, (settings.baselines, settings.benchmark_json)):
        if folder.exists() and not folder.is_dir():
            raise InputError(folder, "expected a folder, found a file")
    files = (settings.json, settings.markdown, settings.html, settings.gitlab)
    for file in filter(None, files):
        if file.is_dir():
            raise InputError(file, "expected a file, found a folder")
    written = [settings.artifacts, settings.benchmark_json]
    written += [settings.baselines] if settings.update is not None else []
    written += [file.parent for file in filter(None, files)]
    for folder in filter(None, written):
        check_writable(folder)


def choose_profiler(
    settings: Settings, environment: Mapping[str, str], *, isolated: bool
) -> ProfilerChoice:
    """Choose the profiler; refuse an environment that spoils all times."""
    choice, passes = _possible(settings, environment), settings.passes
    if passes is PassChoice.WALL:
        choice = replace(choice, guessed=False)  # the user does without device times
    if passes is PassChoice.DEVICE and isolated and choice.kind is ProfilerKind.TRACY:
        message = "--ttnn-perf-passes device: tracy needs a wall pass too; use device"
        raise UsageError(message)
    if choice.kind in OWN_PASS and (not isolated or passes is PassChoice.WALL):
        why = "the wall pass alone" if isolated else f"{choice.kind.value} needs a worker"
        choice = replace(choice, kind=ProfilerKind.OFF, why=why)
    if passes is PassChoice.DEVICE and choice.kind not in OWN_PASS:
        message = f"--ttnn-perf-passes device: there is no device pass: {choice}"
        raise UsageError(message)
    return choice


def _possible(settings: Settings, environment: Mapping[str, str]) -> ProfilerChoice:
    if settings.replay is not None:
        return ProfilerChoice(ProfilerKind.OFF, "replaying")
    found = None
    if ttnn_folder() is not None:
        from pytest_ttnn_perf.machine.inspection import conflicts, impossible, installed_ttnn

        found = installed_ttnn()
        # The profilers of tt-lang are what `ttlang` asks for.
        checked = impossible if settings.profiler is ProfilerKind.TTLANG else conflicts
        in_the_way = checked(environment)
        if in_the_way:
            message = "; ".join(map(str, in_the_way))
            raise UsageError(message)
    # Whatever this build could do, without devices it has nothing to profile.
    if settings.profiler is ProfilerKind.OFF or not has_devices(environment):
        return choose(settings.profiler, found, environment)
    from pytest_ttnn_perf.machine.inspection import preflight

    build = preflight(interpreter(), environment, timeout_s=settings.preflight_timeout)
    return choose(settings.profiler, build, environment)


def has_devices(environment: Mapping[str, str]) -> bool:
    there = devices_of(environment).is_dir() or is_simulated(environment)
    return there and ttnn_folder() is not None


def check_chips(environment: Mapping[str, str], *, processes: int) -> tuple[int, ...]:
    """Return this machine's chips; refuse fewer than processes."""
    chips = visible_chips(environment, devices_of(environment))
    if chips and processes > len(chips):
        there = "is 1 chip" if len(chips) == 1 else f"are {len(chips)} chips"
        message = f"-n {processes}: each process needs a chip of its own, and there {there}"
        raise UsageError(f"{message}: use -n {len(chips)}")
    return chips


def check_untouched(touched: ChipWatch, environment: Mapping[str, str]) -> None:
    """Refuse to start workers where this process has the chips."""
    if touched.by is not None and not is_simulated(environment):
        message = f"--ttnn-perf: {touched.by} took the chips, so no worker can use them"
        raise UsageError(f"{message}: call it in a fixture, or use --ttnn-perf-isolate inline")


def take_share(environment: MutableMapping[str, str], shared: Path) -> tuple[Path, Lease | None]:
    """Make an xdist process' folder, and take a chip if any."""
    from pytest_ttnn_perf.machine.environment import move_folders

    own = shared / environment.get("PYTEST_XDIST_WORKER", str(os.getpid()))
    try:
        own.mkdir(exist_ok=True)
    except OSError as cause:
        raise WriteError(own, cause) from cause
    environment.update(move_folders(environment, shared, own))
    processes = int(environment.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    chips = check_chips(environment, processes=processes)
    if not chips:
        return own, None
    chip = take_one(chips, shared / "chips", timeout_s=_FREE_CHIP_S, print_line=lambda _: None)
    environment.update(chip.environment)
    return own, chip


def lease(
    settings: Settings, environment: Mapping[str, str], print_line: Callable[[str], None]
) -> Lease:
    chips = visible_chips(environment, devices_of(environment))
    if chips:
        _check_sharing(settings, environment)
    return take(
        chips,
        settings.lock_folder or lock_folder(),
        timeout_s=settings.lock_timeout,
        print_line=print_line,
    )


def _check_sharing(settings: Settings, environment: Mapping[str, str]) -> None:
    from pytest_ttnn_perf.machine.chips import RESET, in_the_way
    from pytest_ttnn_perf.machine.inspection import BROKER, BROKER_RESET, find_broker
    from pytest_ttnn_perf.report.sentences import command_line

    broker = find_broker(environment)
    if broker is not None and not broker.runs_us and settings.broker is BrokerUse.QUEUE:
        message = f"the device broker {BROKER} is up ({broker.socket}): "
        program = Path(sys.argv[0]).name
        own = ["pytest" if program == "__main__.py" else program, *sys.argv[1:]]
        queued = command_line(BROKER, "run", command_line(*own))
        raise UsageError(f"{message}runs on its devices go through its queue: {queued}")
    why_not = in_the_way(reset=BROKER_RESET if broker else RESET)
    if why_not is not None:
        raise UsageError(why_not)
