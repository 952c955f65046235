"""Baseline files: their records, their text and their place."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple
from urllib.parse import unquote

from msgspec import Struct

from pytest_ttnn_perf.core.codec import (
    LARGEST,
    Coding,
    Mark,
    Omit,
    Value,
    decode,
    decode_format,
    encode,
)
from pytest_ttnn_perf.core.errors import DecodeError
from pytest_ttnn_perf.core.hardware import Hardware, Scalar
from pytest_ttnn_perf.core.metric import Metric

if TYPE_CHECKING:
    from pytest_ttnn_perf.core.ops import OpGroups
else:
    OpGroups = object  # as in observations

#: The version of the baseline file's schema that this code writes.
BASELINE_FORMAT: Final = 2
#: Sessions kept on each side of the last accept; those of one run count as one. A full list is
#: never rolled: dropping the oldest for the newest would let the centre creep by steps too small
#: to fail.
MAX_SESSIONS: Final = 20


class Session(NamedTuple):
    """Median, MAD (unscaled) and number of the samples of one process.

    ``run`` is the run that the process belonged to; sessions of one run stand side by side. It is
    empty in files of format 1: such sessions count as one run on each side of the last accept. A
    capture that was there before the test stands for its run: in all runs it is the same.

    A tuple, as it is in the file: the gate turns thousands of them into columns.
    """

    median: float
    mad: float
    n: int
    run: str = ""


#: What stands before the content of a capture in the name of its session's run.
CAPTURE: Final = "capture-"


class MetricBaseline(Struct, frozen=True):
    """The sessions of one metric, newest last.

    The sessions from ``since`` on follow the last accept. ``accepted_value`` is the value that was
    accepted last, if sessions were refreshed since: however often that is done, no change beyond
    the limit gets in by small steps.
    """

    metric: Annotated[Metric, Mark.INLINE]
    sessions: Annotated[tuple[Session, ...], Coding(lambda value: value, list)]
    since: int = 0
    accepted_value: float | None = None

    @classmethod
    def from_json(
        cls,
        metric: Metric,
        sessions: Value,
        since: int = 0,
        accepted_value: float | None = None,
    ) -> MetricBaseline:
        try:
            read = tuple(_read_session(item, metric) for item in sessions.array())
            if not read:
                raise sessions.refusal("at least one session")
        except DecodeError as error:
            raise error.below("sessions") from None
        if since >= len(read):
            raise DecodeError(("since",), f"an index into the {len(read)} sessions", str(since))
        if accepted_value is not None and not 0 < accepted_value <= LARGEST:
            raise DecodeError(("accepted_value",), "a number above 0", str(accepted_value))
        return cls(metric, read, since, accepted_value)

    @property
    def current(self) -> tuple[Session, ...]:
        """The sessions since the last accept, which the centre is taken of."""
        return self.sessions[self.since :]

    @property
    def runs(self) -> int:
        """The number of runs on both sides of the last accept."""
        sides = (self.sessions[: self.since], self.current)
        return sum(len({session.run for session in side}) for side in sides)


def _read_session(value: Value, metric: Metric) -> Session:
    if not isinstance(value.raw, list) or not 3 <= len(value.raw) <= 4:
        raise value.refusal("a session: [median, MAD, n, run]")
    median, mad, n, *run = value.array()
    if metric.compared_by_ratio and median.number() <= 0:
        raise median.refusal(f"a {metric.kind.value} above 0")
    if mad.number() < 0:
        raise mad.refusal("a spread of at least 0")
    numbers = median.number(), mad.number()
    # Floats for what is compared by ratio, which is quicker; a checksum stays whole.
    centre, spread = map(float, numbers) if metric.compared_by_ratio else numbers
    return Session(centre, spread, n.integer(at_least=1), run[0].string() if run else "")


def _read_place(value: Value) -> str:
    place = value.string()
    parts = PurePosixPath(place).parts
    if not parts or parts[0] == "/" or ".." in parts or not place.isprintable():
        raise value.refusal("the path of a file within the folder of its key")
    return place


class Acceptance(Struct, frozen=True):
    """The origin of stored numbers: time, commit, reason, ttnn and environment."""

    at: str
    commit: str | None = None
    reason: str | None = None
    ttnn: str | None = None
    environment: Omit[Mapping[str, Scalar]] = {}


#: The setting that only ``ttnn-perf run`` states: the command that it ran.
SCRIPT_FACT: Final = "command"


class TestBaseline(Struct, frozen=True):
    """The stored numbers of one test.

    ``ops`` is the place of its op table, relative to the key's folder; ``op_table`` that table
    itself, of a baseline that is yet to be written.
    """

    __test__ = False  # a record, not something for pytest to collect

    accepted: Acceptance
    metrics: Mapping[str, MetricBaseline]
    configuration: Mapping[str, Scalar] = {}
    ops: Annotated[str | None, Coding(_read_place)] = None
    op_table: Annotated[OpGroups | None, Coding(lambda _: None, str)] = None

    @property
    def is_of_script(self) -> bool:
        """True if ``ttnn-perf run`` made it, and not a test."""
        return SCRIPT_FACT in self.configuration


class BaselineFile(Struct, frozen=True):
    """The baselines of one test file on one hardware key.

    ``test_file`` is stated only where the file's own name does not tell (shortened names).
    """

    hardware: Hardware
    tests: Annotated[Mapping[str, TestBaseline], Mark.REQUIRED] = {}
    test_file: str | None = None


def decode_file(document: object) -> BaselineFile:
    decode_format(Value(document), current=BASELINE_FORMAT, what="a baseline")
    return decode(BaselineFile, document)


def encode_text(file: BaselineFile) -> str:
    """Lay a baseline file out, sorted, one line per session."""
    return "\n".join(_file_lines(file)) + "\n"


def _file_lines(file: BaselineFile) -> Iterator[str]:
    yield "{"
    yield f'  "format": {BASELINE_FORMAT},'
    yield f'  "hardware": {_inline(encode(file.hardware))},'
    if file.test_file is not None:
        yield f'  "test_file": {json.dumps(file.test_file)},'
    yield from _members("tests", {n: _test_lines(t) for n, t in file.tests.items()}, indent=2)
    yield "}"


def _test_lines(test: TestBaseline) -> Iterator[str]:
    yield f'      "accepted": {_inline(encode(test.accepted))},'
    yield f'      "configuration": {_inline(dict(test.configuration))},'
    metrics = {name: _metric_lines(metric) for name, metric in test.metrics.items()}
    lines = list(_members("metrics", metrics, indent=6))
    if test.ops is None:
        yield from lines
    else:
        yield from lines[:-1]
        yield lines[-1] + ","
        yield f'      "ops": {json.dumps(test.ops)}'


def _metric_lines(baseline: MetricBaseline) -> Iterator[str]:
    metric, accepted = encode(baseline.metric), baseline.accepted_value
    if accepted is not None:
        yield f'          "accepted_value": {json.dumps(_shortest(accepted))},'
    yield (
        f'          "better": {json.dumps(metric["better"])},'
        f' "kind": {json.dumps(metric["kind"])}, "sessions": ['
    )
    last = len(baseline.sessions) - 1
    for index, session in enumerate(baseline.sessions):
        comma = "" if index == last else ","
        numbers = (_shortest(session.median), _shortest(session.mad), session.n)
        members = (*numbers, session.run) if session.run else numbers
        yield f"            {json.dumps(members)}{comma}"
    yield (
        f'          ], "since": {baseline.since}, "source": {json.dumps(metric["source"])},'
        f' "unit": {json.dumps(metric["unit"])}'
    )


def _shortest(number: float) -> float:
    """Return a whole number as an int: equal values have equal text."""
    return int(number) if number == int(number) and abs(number) < 1e15 else number


def _members(name: str, members: Mapping[str, Iterator[str]], *, indent: int) -> Iterator[str]:
    """Lay out an object whose members take several lines each."""
    pad = " " * indent
    if not members:
        yield f'{pad}"{name}": {{}}'
        return
    yield f'{pad}"{name}": {{'
    for index, key in enumerate(sorted(members)):
        yield f"{pad}  {json.dumps(key)}: {{"
        yield from members[key]
        yield f"{pad}  }}" if index == len(members) - 1 else f"{pad}  }},"
    yield f"{pad}}}"


def _inline(members: Mapping[str, object]) -> str:
    return json.dumps(members, sort_keys=True)


# Test file ↔ place of its baseline: any test id has one safe file, and no two share one.

#: All but characters that mean the same on every file system. Upper case is escaped: on file
#: systems that fold case, TestA and testa must not meet in one file.
_UNSAFE: Final = re.compile(r"[^a-z0-9_-]")
_UNSAFE_BUT_DOTS: Final = re.compile(r"[^a-z0-9_.-]")
_OUTER_DOTS: Final = re.compile(r"^\.+|\.+$")
_SUFFIX: Final = ".json"
#: Longest name in bytes, and what is kept of a longer one before its hash. "~" is never produced
#: by escaping, so a shortened name cannot meet a whole one.
_MAX_NAME: Final = 100
_HASH_DIGITS: Final = 16
_KEPT: Final = _MAX_NAME - _HASH_DIGITS - 1


def split_test_id(test: str) -> tuple[str, str]:
    """Split a nodeid into the test file and the name within it.

    >>> split_test_id("models/test_a.py::TestX::test_y[8]")
    ('models/test_a.py', 'TestX::test_y[8]')
    """
    file, _, name = test.partition("::")
    return file, name


def baseline_path(root: Path, hardware: Hardware, test_file: str) -> Path:
    return key_folder(root, hardware) / relative_path(test_file)


def key_folder(root: Path, hardware: Hardware) -> Path:
    return root / _shorten(_escape(hardware.key))


def relative_path(test_file: str) -> PurePosixPath:
    """Return a test file's place inside a key's folder.

    ``.py`` goes, any other suffix stays. Dots survive only in a suffix that stays, so folders
    never look like files and ``a.txt.py`` never meets ``a.txt``; a name with no dot to show that
    it was not a ``.py`` file ends in a lone ``%``.

    >>> str(relative_path("models/test_resnet.py"))
    'models/test_resnet.json'
    >>> str(relative_path("docs/Guide.md"))
    'docs/%47uide.md.json'
    """
    *folders, name = test_file.split("/")
    if name.endswith(".py") and name != ".py":
        escaped = _escape(name[: -len(".py")])
    else:
        escaped = _escape(name, keep_dots=True)
        if "." not in escaped:
            escaped += "%"
    return PurePosixPath(
        *(_shorten(_escape(folder)) for folder in folders), _shorten(escaped) + _SUFFIX
    )


def ops_path(test: str) -> PurePosixPath:
    """Return the place of a test's op table inside a key's folder.

    >>> str(ops_path("models/test_resnet.py::test_resnet50[8]"))
    'models/test_resnet.ops/test_resnet50%5B8%5D.csv'
    """
    test_file, name = split_test_id(test)
    folder = relative_path(test_file).with_suffix(".ops")
    return folder / f"{_shorten(_escape(name))}.csv"


def test_file_of(place: PurePosixPath) -> str | None:
    """Return the test file of a baseline; None for shortened names."""
    name = place.name[: -len(_SUFFIX)]
    if any("~" in part for part in (*place.parent.parts, name)):
        return None
    folders = [_unescape(part) for part in place.parent.parts]
    if "." in name or name.endswith("%"):
        return "/".join([*folders, _unescape(name.removesuffix("%"))])
    return "/".join([*folders, _unescape(name) + ".py"])


def _escape(name: str, *, keep_dots: bool = False) -> str:
    if not name:
        return "%"  # an empty part, as in an absolute path, must not vanish
    escaped = (_UNSAFE_BUT_DOTS if keep_dots else _UNSAFE).sub(_percent, name)
    # Leading and trailing dots hide files, climb folders, or vanish on Windows.
    return _OUTER_DOTS.sub(lambda dots: "%2E" * len(dots[0]), escaped)


def _percent(character: re.Match[str]) -> str:
    # surrogatepass: a file name that is not valid UTF-8 still has a place of its own.
    return "".join(f"%{byte:02X}" for byte in character[0].encode("utf-8", "surrogatepass"))


def _unescape(name: str) -> str:
    return "" if name == "%" else unquote(name, errors="surrogatepass")


def _shorten(escaped: str) -> str:
    if len(escaped) <= _MAX_NAME:
        return escaped
    digest = hashlib.sha256(escaped.encode()).hexdigest()[:_HASH_DIGITS]
    return f"{escaped[:_KEPT]}~{digest}"
