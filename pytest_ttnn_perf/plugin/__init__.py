"""The pytest edge: options, marker, fixture, and the gate's switch."""

from __future__ import annotations

import argparse
import os
import re
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from types import TracebackType
    from typing import Any

    from pytest_ttnn_perf.core.hardware import Hardware
    from pytest_ttnn_perf.core.observation import Run
    from pytest_ttnn_perf.core.wings import captures, findings
    from pytest_ttnn_perf.measure.observer import Observer
    from pytest_ttnn_perf.plugin.worker import Worker


def _leave_our_modules_as_they_are() -> None:
    """Keep pytest from rewriting the assertions of our modules.

    pytest marks the whole package of a plugin. It would compile all our modules anew at each start
    where it may not write bytecode, and Python has bytecode of its own from the installation.
    The attributes are not public: where they are missing, pytest rewrites as ever.
    """
    for finder in sys.meta_path:
        marked = getattr(finder, "_must_rewrite", None)
        answered = getattr(finder, "_marked_for_rewrite_cache", None)
        if isinstance(marked, set) and isinstance(answered, dict):
            marked -= {name for name in marked if f"{name}.".startswith("pytest_ttnn_perf.")}
            answered.clear()


_leave_our_modules_as_they_are()


def _capture_into_files(folder: Path) -> None:
    """Let pytest capture into files, which outlive a process that aborts.

    Its own have no name. This module is loaded before it makes them.
    """
    import _pytest.capture as pytests

    from pytest_ttnn_perf.machine.processes import CAPTURED

    names = iter(CAPTURED.values())

    def temporary_file(**how: Any) -> Any:
        name = next(names, None)
        return (folder / name).open("w+b", **how) if name else unnamed(**how)

    unnamed = vars(pytests)["TemporaryFile"]
    vars(pytests)["TemporaryFile"] = temporary_file


if "TTNN_PERF_ASSIGNMENT" in os.environ:  # of a worker
    _capture_into_files(Path(os.environ["TTNN_PERF_ASSIGNMENT"]).parent)

from pytest_ttnn_perf.core.options import (  # noqa: E402 (is not to be rewritten either)
    OPTIONS,
    TURN_ON,
    attribute_of,
    files_of,
    option_of,
)

#: The start of the names of our files.
_OURS: Final = str(Path(__file__).parents[1]) + os.sep
OBSERVER: pytest.StashKey[Observer] = pytest.StashKey()
#: What a point of a sweep had no room for.
OUT_OF_MEMORY: pytest.StashKey[str] = pytest.StashKey()
MARKER_HELP = (
    "ttnn_perf(warmup=, iterations=, pcc=, batch=, tolerance=, max_regression=, target=, waive=, "
    "sweep=, require=): measure this test and gate it with --ttnn-perf"
)


class Hooks:
    """The hooks that other plugins and conftest files may implement."""

    @pytest.hookspec
    def pytest_ttnn_perf_rules(  # type: ignore[empty-body]
        self, config: pytest.Config
    ) -> Sequence[findings.CustomRule]:
        """Return rules to ask in addition to the checklist's.

        Called once in every process of a gated run, before tests are collected: by workers, which
        ask them, and by the orchestrator, which knows their codes by it.
        """

    @pytest.hookspec
    def pytest_ttnn_perf_capture_formats(  # type: ignore[empty-body]
        self, config: pytest.Config
    ) -> Sequence[captures.CaptureFormat]:
        """Return more formats that ``ttnn_perf.attach`` and replays can read.

        Called once in every process of a gated run, before tests are collected.
        """

    @pytest.hookspec(firstresult=True)
    def pytest_ttnn_perf_hardware(
        self, item: pytest.Item, hardware: Hardware | None
    ) -> Hardware | None:
        """Return the hardware of a test, where it is unknown.

        Called in the worker after a test that opened no device through TTNN (``hardware`` is None),
        or one of which the architecture or the board is ``unknown``.
        """

    @pytest.hookspec
    def pytest_ttnn_perf_report(
        self, config: pytest.Config, run: Run, document: Mapping[str, Any]
    ) -> None:
        """Write a report of one's own.

        Called once at the end of a gated run, by the orchestrator, after record and baselines
        are written. ``document`` is the run record, as it is in its file.
        """


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    pluginmanager.add_hookspecs(Hooks)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the options, without defaults: the file has the others."""
    group = parser.getgroup("ttnn-perf", "performance gate for TTNN model tests")
    for name, kind, values, description in OPTIONS:
        more: dict[str, Any]
        if kind == "flag":
            more = {"action": "store_true"}
        elif kind == "choice":
            more = {"choices": values}
        elif kind == "choice, bare":
            more = {"metavar": "WHAT", "nargs": "?", "const": "improved", "type": _update}
        elif kind.startswith("number from "):
            least, _, word = kind.removeprefix("number from ").partition(", or ")
            more = {"metavar": values, "type": _number_from(int(least), word)}
        else:
            more = {"metavar": values}
        # Without ``dest``, pytest compares the name with those of all other options.
        group.addoption(option_of(name), dest=attribute_of(name), help=description, **more)
    group.addoption(option_of("script"), dest=attribute_of("script"), help=argparse.SUPPRESS)


def _update(text: str) -> str:
    choices = next(values for name, _, values, _ in OPTIONS if name == "update")
    if text not in choices:
        message = f"expected one of {', '.join(choices)}, found {text!r}"
        if "/" in text or "." in text or "::" in text:
            # A bare option takes the word after it, which was meant as a test.
            message += f"; did you mean --ttnn-perf-update=improved {text}"
        raise argparse.ArgumentTypeError(message)
    return text


def _number_from(least: int, word: str) -> Callable[[str], int | str]:
    def whole_number(text: str) -> int | str:
        if word and text == word:
            return text
        if not text.isdecimal() or int(text) < least:
            other = f", or {word}" if word else ""
            message = f"expected a whole number of at least {least}{other}, found {text!r}"
            raise argparse.ArgumentTypeError(message)
        return int(text)

    return whole_number


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Take up work before conftest files load: their hooks see judged reports."""
    if _gate_is_wanted(early_config):
        from pytest_ttnn_perf.plugin.activation import activate

        activate(early_config)


def _gate_is_wanted(config: pytest.Config) -> bool:
    options = config.known_args_namespace
    if any(getattr(options, attribute_of(name)) for name in TURN_ON):
        return True
    # A configuration file may turn the gate on; parsing it is worth it only if it names us. So is
    # looking whether a reason explains anything.
    if options.ttnn_perf_reason is None and not files_of(config.rootpath):
        return False
    from pytest_ttnn_perf.plugin.settings import settings_of

    return settings_of(config).enabled


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker; refuse to be on and absent."""
    config.addinivalue_line("markers", MARKER_HELP)
    asked = next((name for name in TURN_ON if getattr(config.option, attribute_of(name))), None)
    roles = ("ttnn_perf_worker", "ttnn_perf_orchestrator")
    if asked is not None and not any(map(config.pluginmanager.has_plugin, roles)):
        option = option_of(asked)
        message = f"{option}: a conftest loaded the plugin too late, or the option comes after --"
        raise pytest.UsageError(message + "; -p pytest_ttnn_perf.plugin loads it in time")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    for marker in metafunc.definition.iter_markers("ttnn_perf"):
        if "sweep" in marker.kwargs:
            from pytest_ttnn_perf.plugin.sweeps import generate_points

            generate_points(metafunc, marker.kwargs["sweep"])
            return


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_makereport(call: pytest.CallInfo[None]) -> None:
    """Show the line of a test that failed, and none of ours."""
    if call.excinfo is None:
        return
    from pytest_ttnn_perf.core.errors import TtnnPerfError

    error = call.excinfo.value
    entries = list(_entries(call.excinfo.tb))
    last = max((i for i, each in enumerate(entries) if not _is_ours(each)), default=None)
    if last is None or "_pytest" in entries[last].tb_frame.f_code.co_filename:
        return
    # A wrong argument raises in the line that calls: of the fixture, or of the measured model.
    misused = isinstance(error, TypeError) and " argument" in str(error)
    if not (isinstance(error, TtnnPerfError) or misused or last == len(entries) - 1):
        return
    if misused and len(entries) > last + 1:
        _hint_at_keyword(error, entries[last + 1])
    shown = [each for each in entries[: last + 1] if not _is_ours(each, also_in_between=False)]
    for each, after in zip(shown, [*shown[1:], None], strict=True):
        each.tb_next = after


def _entries(entry: TracebackType | None) -> Iterator[TracebackType]:
    while entry is not None:
        yield entry
        entry = entry.tb_next


def _is_ours(entry: TracebackType, *, also_in_between: bool = True) -> bool:
    file = entry.tb_frame.f_code.co_filename
    # A context manager of ours is called by Python's own.
    between = also_in_between and file == contextmanager.__code__.co_filename
    return between or file.startswith(_OURS)


def _hint_at_keyword(error: BaseException, entry: TracebackType) -> None:
    """Name the keyword that was probably meant: the model gets all others."""
    from pytest_ttnn_perf.core.text import did_you_mean

    code = entry.tb_frame.f_code
    known = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    found = re.search("unexpected keyword argument '(.+?)'", str(error))
    if found is not None:
        error.args = (f"{error}{did_you_mean(found[1], known)}",)


@pytest.fixture
def ttnn_perf(request: pytest.FixtureRequest) -> Observer:
    """Measure a model, check its accuracy, record any metric."""
    try:
        return observer_for(request.node)
    except pytest.UsageError as error:  # without the gate, nobody has looked before
        message = str(error)
    return pytest.fail(message, pytrace=False)


def observer_for(item: pytest.Item) -> Observer:
    """Return the observer of a test, made on first use.

    It measures under the gate; without it, it only checks.
    """
    if OBSERVER in item.stash:
        return item.stash[OBSERVER]
    from pytest_ttnn_perf.plugin.settings import settings_of, test_settings, who_asked

    settings = settings_of(item.config)
    if settings.enabled:
        from pytest_ttnn_perf.measure.observer import Observer as Fixture
    else:
        from pytest_ttnn_perf.measure.observer import FunctionalObserver as Fixture
    observer = Fixture(item.nodeid, test_settings(item, settings), settings)
    worker: Worker | None = item.config.pluginmanager.get_plugin("ttnn_perf_worker")
    if worker is not None:
        worker.equip(observer)
    if settings.replay is not None:
        from pytest_ttnn_perf.plugin.identity import identity_of

        observer.identity = identity_of(item, settings.identity_ignores)
    observer.asked = who_asked(item, settings)
    item.stash[OBSERVER] = observer
    return observer
