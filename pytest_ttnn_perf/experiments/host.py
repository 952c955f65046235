"""Calls on the host that make a wall time slower.

Both versions are profiled in a pass of their own, whose times are not judged.
"""

from __future__ import annotations

import os
import sys
from collections import Counter, defaultdict
from pathlib import Path
from statistics import fmean, median
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pytest_ttnn_perf.core.assignment import PassKind
from pytest_ttnn_perf.core.metric import Metric
from pytest_ttnn_perf.core.observation import Observation
from pytest_ttnn_perf.core.text import counted
from pytest_ttnn_perf.experiments.repository import Repository
from pytest_ttnn_perf.experiments.rounds import Move, Version, checkout, experiment_of_gate
from pytest_ttnn_perf.plugin.workers import Pass, results_in
from pytest_ttnn_perf.report.tables import format_value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from types import CodeType, FrameType

    from pytest_ttnn_perf.core.settings import Settings

    #: Calls and own nanoseconds of each function in one timed section, per call of the model.
    Section = dict[object, tuple[float, float]]

#: So many functions of a test are kept.
_LARGEST: Final = 40
#: Causes that are named, and the least part of the slowdown that one must have.
_MOST_CAUSES: Final = 3
_LEAST_PART: Final = 0.1
#: Whatever measures is no part of what is measured.
_OURS: Final = str(Path(__file__).parents[1]) + os.sep
_OPS: Final = "ttnn"
#: Functions to Python before 3.12 alone.
_COMPREHENSIONS: Final = frozenset({"<listcomp>", "<setcomp>", "<dictcomp>"})
_TIME: Final = Metric("host", "ns")


class CallRecorder:
    """Calls and own times of functions in timed sections.

    What the recorder itself takes is left out. ``root`` is the folder that places start from.
    """

    def __init__(self, root: Path) -> None:
        self._root = f"{root}{os.sep}"
        self._begin_test()

    def _begin_test(self) -> None:
        self._series: list[list[Section]] = []
        self._places: dict[object, Counter[str]] = defaultdict(Counter)
        self._names: dict[object, str] = {}
        self._codes: list[CodeType] = []  # as long as they live, their ids are their own

    def begin_series(self) -> None:
        """Begin timed sections of one kind."""
        self._series.append([])

    def begin(self) -> None:
        """Begin a timed section."""
        self._stack: list[object] = []
        self._calls: Counter[object] = Counter()
        self._own_ns: Counter[object] = Counter()
        self._last_ns = perf_counter_ns()
        sys.setprofile(self._record)

    def end(self, calls: int) -> None:
        """End a section of so many calls of the model."""
        sys.setprofile(None)
        found = {key: (count / calls, self._own_ns[key] / calls)
                 for key, count in self._calls.items()}  # fmt: skip
        self._series[-1].append(found)

    def take(self) -> dict[str, Any]:
        """Return the profile of a test: the largest functions, and all ops."""
        own_ns: dict[str, float] = defaultdict(float)
        calls: dict[str, float] = defaultdict(float)
        # Blocks are sections by themselves. Of calls in a row the least time is that without waits.
        alone = [section for series in self._series if len(series) == 1 for section in series]
        for series in (alone, *(series for series in self._series if len(series) > 1)):
            for key in {key for section in series for key in section} & self._names.keys():
                seen = [section.get(key, (0.0, 0.0)) for section in series]
                counts, times_ns = [count for count, _ in seen], [own for _, own in seen]
                calls[self._names[key]] += fmean(counts) if series is alone else median(counts)
                own_ns[self._names[key]] += fmean(times_ns) if series is alone else min(times_ns)
        kept = set(sorted(own_ns, key=lambda name: -own_ns[name])[:_LARGEST])
        kept |= {name for name in calls if name.startswith(f"{_OPS}.")}
        places: dict[str, Counter[str]] = defaultdict(Counter)
        for key, known in self._places.items():
            places[self._names.get(key, "")] += known
        found = {
            name: [calls[name], own_ns[name], dict(places[name].most_common(_MOST_CAUSES))]
            for name in sorted(kept)
        }
        self._begin_test()
        return found

    def _record(self, frame: FrameType, event: str, called: Any) -> None:
        now_ns = perf_counter_ns()
        stack = self._stack
        if stack:
            self._own_ns[stack[-1]] += now_ns - self._last_ns
        if event in {"call", "c_call"}:
            inside = stack[-1] if stack else None
            if _is_part(frame, event, inside):
                stack.append(inside)
            else:
                key = self._key_of(frame, called)
                stack.append(key)
                self._calls[key] += key is not None
        elif stack:
            stack.pop()
        self._last_ns = perf_counter_ns()

    def _key_of(self, frame: FrameType, called: Any) -> object | None:
        """Return the key of a called function; None for our own."""
        op, caller = (_op_of(frame), frame.f_back) if called is None else (None, frame)
        if op is None and called is None:
            code = frame.f_code
            key: object = id(code)
            if key not in self._names and not code.co_filename.startswith(_OURS):
                name = getattr(code, "co_qualname", code.co_name).replace("<locals>.", "")
                self._codes.append(code)
                self._names[key] = f"{Path(code.co_filename).stem}.{name}"
                self._places[key][self._place(code, code.co_firstlineno)] += 1
            return key if key in self._names else None
        module = getattr(called, "__module__", None)
        name = getattr(called, "__qualname__", None) or repr(called)
        if op is None and name in {"perf_counter_ns", "setprofile"}:
            return None
        key = op or (f"{module}.{name}" if module and module != "builtins" else name)
        self._names[key] = str(key)
        if caller is not None:
            self._places[key][self._place(caller.f_code, caller.f_lineno)] += 1
        return key

    def _place(self, code: CodeType, line: int) -> str:
        file = code.co_filename
        if file.startswith(self._root):
            file = file.removeprefix(self._root)
        else:
            file = "/".join(Path(file).parts[-2:])
        return f"{file}:{line}"


def _is_part(frame: FrameType, event: str, inside: object) -> bool:
    """Return whether a call is a part of its caller."""
    is_of_op = isinstance(inside, str) and inside.startswith(f"{_OPS}.")
    comprehension = event == "call" and frame.f_code.co_name in _COMPREHENSIONS
    return inside is not None and (comprehension or (is_of_op and _is_of_ttnn(frame)))


def _is_of_ttnn(frame: FrameType | None) -> bool:
    return frame is not None and str(frame.f_globals.get("__name__")).split(".")[0] == _OPS


def _op_of(frame: FrameType) -> str | None:
    """Return the name of an op of ttnn that other code calls."""
    if not _is_of_ttnn(frame) or _is_of_ttnn(frame.f_back):
        return None
    name = frame.f_code.co_name
    if name == "__call__":  # of an operation that is an object
        name = getattr(frame.f_locals.get("self"), "python_fully_qualified_name", name)
    return name if name.startswith(f"{_OPS}.") else f"{_OPS}.{name}"


class Part(NamedTuple):
    """A function's part of a slowdown."""

    name: str
    own_ns: float
    before: float
    after: float
    place: str

    @property
    def is_called_more(self) -> bool:
        return round(self.after) > round(self.before)

    def __str__(self) -> str:
        if round(self.before) != round(self.after):
            return f"{self.name} {self.before:.0f} → {self.after:.0f} calls ({self.place})"
        return f"{self.name} {_signed(self.own_ns)} ({self.place})"


def _signed(time_ns: float) -> str:
    return f"{'-' if time_ns < 0 else '+'}{format_value(_TIME, abs(time_ns))}"


def host_sentence(
    before: Mapping[str, Any], after: Mapping[str, Any], slower_ns: float
) -> str | None:
    """Name the functions that make up a slowdown, and the remainder.

    None if no function takes longer or is called more often.
    """
    parts = []
    for name in {*before, *after}:
        (then, then_ns, was), (now, now_ns, places) = (
            side.get(name, [0.0, 0.0, {}]) for side in (before, after)
        )
        more = {place: count - was.get(place, 0) for place, count in places.items()}
        place = max(more, key=lambda each: more[each], default=next(iter(was), "gone"))
        parts.append(Part(name, now_ns - then_ns, then, now, place))
    parts.sort(key=lambda part: -part.own_ns)
    sum_ns = sum(max(part.own_ns, 0.0) for part in parts)
    # What is not called more often must explain something to be more than noise.
    named = [
        part
        for part in parts
        if part.own_ns > _LEAST_PART * (sum_ns if part.is_called_more else max(sum_ns, slower_ns))
    ][:_MOST_CAUSES]
    # Ops that are called more often also cost what they keep waiting.
    ops = [part for part in parts if part.name.startswith(f"{_OPS}.") and part.is_called_more]
    named += [part for part in ops if part not in named][: _MOST_CAUSES - len(named)]
    if not named:
        return None
    left_ns = slower_ns - sum(part.own_ns for part in named)
    rest = f"; {_signed(left_ns)} not explained by these"
    return f"host: {_signed(slower_ns)}, {', '.join(map(str, named))}{rest}"


def explain(
    name: str,
    slower_ns: Mapping[str, float],
    words: Sequence[str],
    cwd: Path,
    settings: Settings,
    print_line: Callable[[str], None],
) -> dict[str, str]:
    """Profile tests here and in a commit; return what takes longer.

    Raises:
        TtnnPerfError: they cannot be profiled in both.
    """
    repository = Repository.around(cwd)
    root, commit, here = repository.root, repository.commit(name), cwd.resolve()
    tests = counted(len(slower_ns), "test")
    print_line(f"calls on the host, profiled here and in {commit.short}: {tests}")
    asked = experiment_of_gate(commit, words, 1, cwd, settings, lambda *_: None)
    with checkout(asked, root, commit) as tree:
        after = Version("working tree", Move(root, root, here), tree, asked, chooses=True)
        now = dict(_profiles(after, [*slower_ns]))
        before = Version(commit.short, Move(root, tree, here), root, asked)
        if after.found.collected is not None:
            before.follow(after, after.found.collected)
        then = dict(_profiles(before, [*slower_ns]))
    sentences = {
        test: host_sentence(then[test], now[test], slower)
        for test, slower in slower_ns.items()
        if then.get(test) and now.get(test)
    }
    return {test: text for test, text in sentences.items() if text is not None}


def _profiles(version: Version, tests: Sequence[str]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    version.workers.versions = version.versions
    with Pass(version.workers, PassKind.HOST, tests) as one:
        for message in one:
            if message.kind == "collected" and version.found.collected is None:
                version.found.collected = message
            for test, result in results_in(message):
                if isinstance(result, Observation) and not result.ended:
                    yield test, result.conditions.get("calls", {})
