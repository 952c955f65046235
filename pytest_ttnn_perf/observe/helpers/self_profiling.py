"""Notices a test that starts a profiled process of its own, and stops it where that must not be.

Such a process waits for the chips that its parent has opened, for ever; and in a pass that is
profiled it would be given our profiler's folder, which the helpers delete first.
"""

from __future__ import annotations

import os
import re
import sys
from typing import TYPE_CHECKING, Any, Final

from pytest_ttnn_perf._base.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_ttnn_perf.observe.recorder import Recorder


_TRACY: Final = re.compile(r"(?:^|\s)-m\s+tracy(?:\s|$)")
#: What starts a process, with the place of its command among what is told of it.
_STARTS: Final = {"subprocess.Popen": 1, "os.system": 0, "os.posix_spawn": 1, "os.exec": 1}
_REMOVES: Final = "shutil.rmtree"
_FOLDER: Final = "TT_METAL_PROFILER_DIR"


class RunsApart(BaseException):
    """Ends a test that is going to be run again, in a worker of its own.

    Not an ``Exception``: no test is to catch it.
    """


class SelfProfilingWatch:
    """Watches the processes that a test starts. ``elsewhere``: another worker can run it.

    ``profiled``: this process has been given the variables of our profiler. ``beside_others``:
    other processes run tests meanwhile, and may have the chips.
    """

    def __init__(
        self,
        has_opened_device: Callable[[], bool],
        *,
        profiled: bool = False,
        beside_others: bool = False,
        elsewhere: bool = False,
    ) -> None:
        self._has_opened_device = has_opened_device
        self._profiled = profiled
        self._beside_others = beside_others
        self._elsewhere = elsewhere
        self._recorder: Recorder | None = None
        #: Whether the running test was stopped.
        self.stopped = False

    def begin(self, recorder: Recorder) -> None:
        """Watch a test from now on."""
        self._recorder = recorder
        _watch(self)

    def end(self) -> None:
        """Watch nothing until the next test."""
        self._recorder = None
        _watch(None)

    @property
    def can_stop(self) -> bool:
        """Whether another worker would run a test that is stopped here."""
        return self._elsewhere

    @property
    def must_not_profile(self) -> bool:
        """Whether a profiled process that is started here would harm, or wait for ever."""
        return self._profiled or self._beside_others or self._has_opened_device()

    def stop(self) -> None:
        """End the running test: another worker is going to run it."""
        __tracebackhide__ = True
        self.stopped = True
        raise RunsApart

    def notice(self, event: str, told: tuple[Any, ...]) -> None:
        """Look at what is about to happen in this process, and prevent it by raising."""
        __tracebackhide__ = True
        if self._recorder is None:
            return
        if event == _REMOVES:
            profiles = self._profiled and _holds(told[0], os.environ.get(_FOLDER))
        else:
            command = _text(told[_STARTS[event]])
            profiles = _TRACY.search(command) is not None or self._would_remove(command)
        if not profiles:
            return
        self._recorder.profiles_itself = True
        if not self.must_not_profile:
            return
        if self._elsewhere:
            self.stop()
        message = (
            "the test starts a profiled process, which would wait for ever for the device that "
            "this process has opened: leave out --ttnn-perf-isolate inline"
        )
        raise UsageError(message)

    def _would_remove(self, command: str) -> bool:
        folder = os.environ.get(_FOLDER)
        return self._profiled and bool(folder) and "rm " in command and str(folder) in command


def _text(command: Any) -> str:
    if isinstance(command, (list, tuple)):
        return " ".join(os.fsdecode(word) for word in command if isinstance(word, (str, bytes)))
    return os.fsdecode(command) if isinstance(command, (str, bytes)) else str(command)


def _holds(removed: Any, folder: str | None) -> bool:
    """Tell whether a folder lies in what is removed, or is it."""
    if not folder or not isinstance(removed, (str, os.PathLike)):
        return False
    whole, part = os.path.abspath(removed), os.path.abspath(folder)  # noqa: PTH100 (no links read)
    return part == whole or part.startswith(whole + os.sep)


#: Who is told of what happens. Python keeps a hook for good: without a watch it does nothing.
_watching: SelfProfilingWatch | None = None
_hooked = False


def _watch(watch: SelfProfilingWatch | None) -> None:
    global _watching, _hooked  # noqa: PLW0603 (a process has one set of hooks)
    _watching = watch
    if not _hooked and watch is not None:
        _hooked = True
        sys.addaudithook(_hook)


def _hook(event: str, told: tuple[Any, ...]) -> None:
    if _watching is not None and (event in _STARTS or event == _REMOVES):
        _watching.notice(event, told)
