"""What the user asked for, once options and configuration file are read."""

from __future__ import annotations

from dataclasses import field
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf._base.errors import UsageError
from pytest_ttnn_perf._base.text import repr_of
from pytest_ttnn_perf.records.json_value import LARGEST
from pytest_ttnn_perf.records.metric import OF_DEVICE, Source

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_ttnn_perf.records.database_url import DatabaseUrl
    from pytest_ttnn_perf.records.finding import Severity
    from pytest_ttnn_perf.records.observation import SweepPoint


#: Rounds of ``ttnn-perf ab`` at most; fewer say next to nothing of how much rounds differ.
MIN_ROUNDS: Final = 3
MAX_ROUNDS: Final = 50
USUAL_ROUNDS: Final = 20
#: Runs that a baseline is refreshed from: fewer do not show how much runs differ, and a baseline
#: keeps no more of them.
MIN_REFRESHED: Final = 3
MAX_REFRESHED: Final = 20


class Checklist(Enum):
    """What findings do: errors fail their test, all are printed, or none is looked for."""

    ENFORCE = "enforce"
    REPORT = "report"
    OFF = "off"


@dataclass(frozen=True, slots=True)
class RuleSettings:
    """What is other than usual for one rule; ``waive`` is the reason to do without it."""

    limits: Mapping[str, float] = field(default_factory=dict)
    severity: Severity | None = None
    waive: str | None = None


class ProfilerKind(Enum):
    """Where device times come from."""

    AUTO = "auto"
    OFF = "off"
    REALTIME = "realtime"
    DEVICE = "device"
    TRACY = "tracy"
    TTLANG = "ttlang"


class PassChoice(Enum):
    """Which passes a run makes."""

    BOTH = "both"
    WALL = "wall"
    DEVICE = "device"


#: The PCC that holds where nobody asks for another.
USUAL_PCC: Final = 0.99
#: Comparing so many elements takes some 20 ms, which is less than the helpers themselves take; an
#: output of an image model or a step of decoding has fewer.
USUAL_PCC_ELEMENTS: Final = 4_000_000


class Update(Enum):
    """Which results are written into the baselines."""

    NEW = "new"
    IMPROVED = "improved"
    ALL = "all"


class Missing(Enum):
    """What becomes of a test that there is nothing to compare with."""

    FAIL = "fail"
    WARN = "warn"
    IGNORE = "ignore"


class Isolate(Enum):
    """Where tests run: in worker processes, or in the one that the user started."""

    AUTO = "auto"
    PROCESS = "process"
    INLINE = "inline"


class HelperAsserts(Enum):
    """What becomes of a helper's assertion that a time lies near an expected value."""

    KEEP = "keep"
    TARGET = "target"


class PccLimits(Enum):
    """Whether tests may ask for less PCC than usual."""

    ASKED = "asked"
    STRICT = "strict"


class BrokerUse(Enum):
    """Whether a run beside the queue of a device broker is refused."""

    QUEUE = "queue"
    IGNORE = "ignore"


#: Names of parameters that hold what somebody expects of a test, and not what the test is.
IDENTITY_IGNORES: Final = ("expected*", "*target*", "*margin*", "*threshold*", "*tolerance*")


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a run. Paths are absolute.

    ``timeout`` is the longest silence of a worker, in seconds, before it is killed; 0 for never.
    ``lock_timeout`` is how long a run waits for another that has a chip, ``preflight_timeout`` for
    ttnn to say what it can do. ``reset`` is a command.
    ``annotations``, ``step_summary`` and ``junit_properties`` are what CI is told by itself.
    ``identity_ignores`` are patterns of names of parameters that no baseline is filed under;
    ``key`` is what of the hardware they are filed under.
    ``observe``: what tests measure with helpers of their project is recorded; a PCC of at most
    ``observe_pcc_elements`` elements is computed anew beside the helper's. ``gate_steps`` are
    patterns of the steps of a helper's profiler that are gated where a test tells nothing better.
    ``agents_accept``: coding agents may change baselines through ``ttnn-perf mcp``.
    """

    enabled: bool = False
    all: bool = False
    baselines: Path = Path("baselines")
    artifacts: Path = Path(".ttnn_perf")
    update: Update | None = None
    reason: str | None = None
    missing: Missing = Missing.FAIL
    required: bool = False
    stale_days: int = 180
    isolate: Isolate = Isolate.AUTO
    confirm: int = 2
    timeout: float = 3600.0
    warmup: int = 3
    iterations: int = 10
    pcc: float = USUAL_PCC
    limits: PccLimits = PccLimits.ASKED
    json: Path | None = None
    markdown: Path | None = None
    html: Path | None = None
    gitlab: Path | None = None
    benchmark_json: Path | None = None
    history: DatabaseUrl | None = None
    annotations: bool = True
    step_summary: bool = True
    junit_properties: bool = True
    label: str | None = None
    replay: Path | None = None
    profiler: ProfilerKind = ProfilerKind.AUTO
    passes: PassChoice = PassChoice.BOTH
    reset: str | None = None
    checklist: Checklist = Checklist.ENFORCE
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    rules: Mapping[str, RuleSettings] = field(default_factory=dict)
    lock_folder: Path | None = None
    lock_timeout: float = 3600.0
    preflight_timeout: float = 300.0
    broker: BrokerUse = BrokerUse.QUEUE
    markers: tuple[str, ...] = ()
    targets: Path | None = None
    identity_ignores: tuple[str, ...] = IDENTITY_IGNORES
    key: tuple[str, ...] = ("arch", "board", "mesh")
    gate_call_time: bool = False
    gate_first_call_time: bool = False
    gate_second_call_time: bool = False
    observe: bool = True
    observe_pcc_elements: int = USUAL_PCC_ELEMENTS
    helper_asserts: HelperAsserts = HelperAsserts.KEEP
    gate_steps: tuple[str, ...] = ("inference*",)
    agents_accept: bool = True


@dataclass(frozen=True, slots=True)
class TestSettings:
    """What a test's marker asks for, completed by the run's settings.

    A bare number in ``tolerance`` or ``max_regression`` is stored under the name ``"*"``. ``gate``
    names metrics that are judged also where they only explain a time. ``region`` is the one that is
    taken of captures. ``sweep`` is the point that the test is of a sweep.
    """

    __test__ = False  # a record, not something for pytest to collect

    warmup: int
    iterations: int
    pcc: float
    batch: int | None = None
    tolerance: Mapping[str, float] = field(default_factory=dict)
    max_regression: Mapping[str, float] = field(default_factory=dict)
    target: Mapping[str, str | float] = field(default_factory=dict)
    waive: Mapping[str, str] = field(default_factory=dict)
    gate: tuple[str, ...] = ()
    region: str | None = None
    sweep: SweepPoint | None = None


def left_out(settings: Settings) -> tuple[Source, ...]:
    """Return the sources that the user does without: what they measured before is not missed."""
    if settings.passes is PassChoice.DEVICE:
        return (Source.WALL,)
    wall_only = settings.passes is PassChoice.WALL or settings.profiler is ProfilerKind.OFF
    return OF_DEVICE if wall_only else ()


def whole_number(name: str, value: object, *, least: int) -> int:
    """Return a whole number of at least ``least``; anything else is a mistake."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        message = f"{name}: expected a whole number of at least {least}, found {repr_of(value)}"
        raise UsageError(message)
    return value


def finite_number(name: str, value: object) -> float:
    """Return a finite number; anything else is a mistake."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if isinstance(value, (int, float)) and is_number and -LARGEST <= value <= LARGEST:
        return value
    message = f"{name}: expected a finite number, found {repr_of(value)}"
    raise UsageError(message)


class Take(Enum):
    """Whose baseline is taken where both sides changed one in ways that cannot be joined."""

    OURS = "ours"
    THEIRS = "theirs"
    NEWEST = "newest"
