"""What a command prints and ends with, and the command that repeats a test."""

from __future__ import annotations

import posixpath
import shlex
from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf.records.metric import OF_DEVICE

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_ttnn_perf.records.observation import Observation


@dataclass(frozen=True, slots=True)
class Result:
    """The text to print, and whether it is bad news for the shell.

    ``shifted``: no test is to blame, but the machine is slower as a whole. ``errors`` is what goes
    to stderr. ``then`` is what is done once the text is out, so that a change is read before it is
    made; what it returns is printed after it.
    """

    text: str
    failed: bool = False
    shifted: bool = False
    errors: str = ""
    then: Callable[[], Result] | None = None


#: What makes tt-lang print where the time of a kernel goes.
_AUTO_PROFILE: Final = (
    "TTLANG_AUTO_PROFILE=1 TT_METAL_DEVICE_PROFILER=1 TT_METAL_PROFILER_MID_RUN_DUMP=1"
)


class Updating(NamedTuple):
    """Commands that keep a gain, record what has no baseline, and accept whatever it is."""

    keep: str
    record: str
    accept: str


@dataclass(frozen=True, slots=True)
class Rerun:
    """How a user runs one test again from where they stand.

    ``folder`` leads from there to the folder that test ids start from; ``options`` are those of
    this run that the next one needs too; ``selection`` is what it was asked to run, if anything.
    ``records`` are those of a run that was made elsewhere: nobody needs to repeat it to accept it.
    """

    folder: str = ""
    options: tuple[str, ...] = ()
    selection: tuple[str, ...] = ()
    records: tuple[str, ...] = ()

    def updates(self, test: str) -> Updating:
        """Return the commands that take a test's result into the baselines."""
        if self.records:
            words = ["ttnn-perf", "baseline", "accept", *self.records, test]
            accept = shlex.join([*words, *self.baselines_option]) + " --update"
            # A gain that one process measured is kept by a decision only.
            whatever = f'{accept} all --reason "why"'
            return Updating(whatever, f"{accept} new", whatever)
        words = ["pytest", posixpath.join(self.folder, test), *self.options]
        run = f"{shlex.join(words)} --ttnn-perf-update"
        return Updating(run, f"{run}=new", f'{run}=all --ttnn-perf-reason "why"')

    @property
    def baselines_option(self) -> tuple[str, ...]:
        """What commands of ``ttnn-perf`` need to be told to find the baselines of this run."""
        words = dict(zip(self.options[::2], self.options[1::2], strict=True))
        folder = words.get("--ttnn-perf-baselines")
        return () if folder is None else ("--baselines", folder)

    def full_profile(self, observation: Observation) -> str | None:
        """Return the command that profiles a test in all detail; None if it ran on no device."""
        path = posixpath.join(self.folder, observation.test)
        if observation.has_kernels:  # not with a perf dump beside it, which changes what is timed
            return f"{_AUTO_PROFILE} {shlex.join(['pytest', '-s', path])}"
        if any(each.metric.source in OF_DEVICE for each in observation.metrics.values()):
            return shlex.join(["python", "-m", "tracy", "-r", "-p", "-v", "-m", "pytest", path])
        return None

    def accept_all(self) -> str:
        """Return the command that accepts the results of all tests."""
        if self.records:
            words = ["ttnn-perf", "baseline", "accept", *self.records, *self.baselines_option]
            return f'{shlex.join(words)} --update all --reason "why"'
        selection = self.selection or ((self.folder,) if self.folder else ())
        words = ["pytest", *selection, *self.options]
        return f'{shlex.join(words)} --ttnn-perf-update=all --ttnn-perf-reason "why"'
