"""Whether two sides of a step were measured alike.

Files that decide a measurement are compared by their content before anything runs. Limits, numbers
of calls and shapes of inputs are compared as workers saw them, wherever they are written.
"""

from __future__ import annotations

import re
from hashlib import blake2b
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf._base.text import shortened
from pytest_ttnn_perf.records.metric import OF_DEVICE
from pytest_ttnn_perf.records.step import Edit, Refusal
from pytest_ttnn_perf.run.settings import CONFIGURATION_FILES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_ttnn_perf.processes.snapshots import ChangedFile, State, States
    from pytest_ttnn_perf.records.observation import Conditions, Observation


_SHARED_FILE: Final = "pyproject.toml"
#: The tables of a shared file that say how tests are run and judged.
_OURS: Final = re.compile(r"\[+tool\.(pytest|ttnn_perf)\b")
_TABLE: Final = re.compile(r"^\[")
#: Keywords of tests that decide what a time means, as they stand in a line.
_DECIDING: Final = re.compile(
    r"\b(tolerance|max_regression|warmup|iterations|pcc|at_least|at_most|waive|sync|clock|setup|"
    r"pipelined|batch)\b"
)
_SHOWN: Final = 60


@dataclass(frozen=True, slots=True)
class Places:
    """What must not change, as paths from the root of the repository.

    ``tests`` are files and folders of tests, ``baselines`` and ``targets`` what they are compared
    with.
    """

    tests: tuple[str, ...]
    baselines: str | None
    targets: str | None = None


def edited_files(states: States, before: State, after: State, places: Places) -> list[Refusal]:
    """Return the files of a step that decide what is measured, and how it is judged."""
    found = []
    for file in states.changed_files(before, after):
        edit = _kind_of(file, places)
        if edit is Edit.CONFIGURATION and file.path.endswith(_SHARED_FILE):
            texts = {_own_tables(states.text(state, file.path)) for state in (before, after)}
            edit = edit if len(texts) > 1 else None
        if edit is not None:
            found.append(Refusal(edit.value, _where(states, before, after, file)))
    return found


def _kind_of(file: ChangedFile, places: Places) -> Edit | None:
    path = PurePosixPath(file.path)
    if places.baselines is not None and path.is_relative_to(places.baselines):
        return Edit.BASELINES
    if file.path == places.targets or path.name in CONFIGURATION_FILES:
        return Edit.CONFIGURATION
    if path.name == "conftest.py" and any(_applies(path.parent, test) for test in places.tests):
        return Edit.CONFTEST
    return Edit.TEST if file.path in places.tests else None


def _applies(folder: PurePosixPath, test: str) -> bool:
    """Tell whether what a folder says holds for tests in a place."""
    return PurePosixPath(test).is_relative_to(folder) or folder.is_relative_to(test)


def _own_tables(text: str) -> str:
    """Return the parts of a shared configuration file that are about tests."""
    kept, ours = [], False
    for line in text.splitlines():
        if _TABLE.match(line):
            ours = bool(_OURS.match(line))
        if ours and line.strip():
            kept.append(line.strip())
    return "\n".join(kept)


def _where(states: States, before: State, after: State, file: ChangedFile) -> str:
    """Say where a file was changed, and which of the keywords that decide are in its lines."""
    if file.after is None:
        return f"{file.path} was removed"
    if file.before is None:
        return f"{file.path} is new"
    lines = list(states.new_lines(before, after, file.path))
    if not lines:
        return f"{file.path}: lines were removed"
    words = dict.fromkeys(word for line in lines for word in _DECIDING.findall(line.text))
    about = f" ({', '.join(words)})" if words else ""
    telling = next((line for line in lines if _DECIDING.search(line.text)), lines[0])
    return f"{file.path}:{telling.number}{about}: {shortened(telling.text.strip(), _SHOWN)}"


def differing_conditions(test: str, then: Observation, now: Observation) -> Iterator[Refusal]:
    """Yield in what two sides of a test were not measured alike."""
    yield from _limits(test, then, now)
    for metric, conditions in now.conditions.items():
        known = then.conditions.get(metric)
        if known is not None:
            yield from _calls(f"{test} {metric}", known, conditions)


def _limits(test: str, then: Observation, now: Observation) -> Iterator[Refusal]:
    for name, observed in then.metrics.items():
        if not observed.gated:
            continue
        other = now.metrics.get(name)
        if other is None or not other.gated:
            # What a profiler did not tell nobody has taken away, and ops that are gone have no part
            # of the time any more.
            if observed.metric.source not in OF_DEVICE and not observed.metric.totals:
                yield Refusal(Edit.METRICS.value, f"{test} {name}: gated before")
            continue
        for edit, field in (
            (Edit.TOLERANCE, "tolerance"),
            (Edit.TOLERANCE, "max_regression"),
            (Edit.LIMIT, "at_least"),
            (Edit.LIMIT, "at_most"),
        ):
            was, is_now = (getattr(one.limits, field) for one in (observed, other))
            if was != is_now:
                sentence = f"{test} {name}: {field} {_shown(was)}, now {_shown(is_now)}"
                yield Refusal(edit.value, sentence)
    if then.waived != now.waived:
        codes = sorted(then.waived.keys() ^ now.waived.keys()) or sorted(now.waived)
        yield Refusal(Edit.WAIVER.value, f"{test}: {', '.join(codes)}")


def _calls(where: str, then: Conditions, now: Conditions) -> Iterator[Refusal]:
    for edit, was, is_now in (
        (Edit.WARMUP, then.warmup, now.warmup),
        (Edit.ITERATIONS, then.iterations, now.iterations),
        (Edit.ITERATIONS, then.depth, now.depth),
        (Edit.INPUTS, ", ".join(then.inputs), ", ".join(now.inputs)),
    ):
        if was != is_now:
            yield Refusal(edit.value, f"{where}: {_shown(was)}, now {_shown(is_now)}")


def hash_of(*parts: object) -> str:
    """Return a short hash of some values."""
    return blake2b(repr(parts).encode(), digest_size=8).hexdigest()


def _shown(value: object) -> str:
    return "none" if value in {None, ""} else shortened(str(value), _SHOWN)
