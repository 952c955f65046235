"""The project's configuration: ``[tool.ttnn_perf]`` in pyproject.toml, or ttnn_perf.toml."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from enum import Enum
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias
from urllib.parse import unquote, urlsplit

from msgspec import Struct
from msgspec.structs import replace

from pytest_ttnn_perf.core.codec import LARGEST, Coding, Value, decode
from pytest_ttnn_perf.core.errors import DecodeError, InputError, UsageError
from pytest_ttnn_perf.core.files import read_text
from pytest_ttnn_perf.core.finding import Severity, current_code
from pytest_ttnn_perf.core.metric import OF_DEVICE, Better, Kind, Metric, Source
from pytest_ttnn_perf.core.options import (
    LARGEST_TEXT_BYTES,
    OWN_FILE,
    SHARED_FILE,
    files_of,
    option_of,
)
from pytest_ttnn_perf.core.text import did_you_mean, repr_of

if TYPE_CHECKING:
    from pytest_ttnn_perf.core.observation import SweepPoint


# What the user asked for, once options and configuration file are read.

#: Rounds of ``ttnn-perf ab`` at most; fewer say next to nothing of how much rounds differ.
MIN_ROUNDS: Final = 3
MAX_ROUNDS: Final = 50
USUAL_ROUNDS: Final = 20


class Checklist(Enum):
    """Effect of findings: errors fail, all are printed, or rules are off."""

    ENFORCE = "enforce"
    REPORT = "report"
    OFF = "off"


class RuleSettings(Struct, frozen=True):
    """Unusual limits, severity and reason of a waiver of a rule."""

    limits: Mapping[str, float] = {}
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
    """The passes of a run."""

    BOTH = "both"
    WALL = "wall"
    DEVICE = "device"


#: The PCC that holds where nobody asks for another.
USUAL_PCC: Final = 0.99
#: Comparing so many elements takes some 20 ms, which is less than the helpers themselves take; an
#: output of an image model or a step of decoding has fewer.
USUAL_PCC_ELEMENTS: Final = 4_000_000


class Update(Enum):
    """The results that are written into the baselines."""

    NEW = "new"
    IMPROVED = "improved"
    ALL = "all"


class Missing(Enum):
    """The fate of a test without a comparable baseline."""

    FAIL = "fail"
    WARN = "warn"
    IGNORE = "ignore"


class TooNoisy(Enum):
    """The fate of a test that cannot notice what must be noticed."""

    WARN = "warn"
    FAIL = "fail"


class Isolate(Enum):
    """The process that tests run in: workers, or the user's own."""

    AUTO = "auto"
    PROCESS = "process"
    INLINE = "inline"


class HelperAsserts(Enum):
    """The fate of a helper's assertion about an expected time."""

    KEEP = "keep"
    TARGET = "target"


class PccLimits(Enum):
    """The lowest PCC that tests may ask for."""

    ASKED = "asked"
    STRICT = "strict"


class Observe(Enum):
    """The tests whose calls of known helpers are recorded.

    GATE also takes in tests without a marker that measure with one.
    """

    OFF = False
    RECORD = True
    GATE = "gate"


class BrokerUse(Enum):
    """The fate of a run outside the queue of a device broker."""

    QUEUE = "queue"
    IGNORE = "ignore"


# How settings of an unusual form are read from a file.


def _correlation(value: Value) -> float:
    limit = value.number()
    if not -1 <= limit <= 1:
        raise value.refusal("a correlation from -1 to 1")
    return limit


#: What a pattern of names stands for, and whether that is gated.
Declared: TypeAlias = tuple[Metric, bool]


def _observe(value: Value) -> Observe:
    if not isinstance(value.raw, bool) and value.raw != Observe.GATE.value:
        raise value.refusal("true, false or 'gate'")
    return Observe(value.raw)


def _measurements(value: Value) -> dict[str, Declared]:
    return {pattern: _declared(pattern, item) for pattern, item in value.items()}


def _declared(pattern: str, value: Value) -> Declared:
    unknown = next((v for n, v in value.items() if n not in {"unit", "better", "gated"}), None)
    if unknown is not None:
        raise DecodeError(unknown.path, "one of unit, better, gated", "another name")
    own_unit, own_way, gated = (value.optional(name) for name in ("unit", "better", "gated"))
    unit = own_unit.string() if own_unit else ""
    kind = Kind.of_unit(unit)
    if own_way is None and kind is None:
        raise value.refusal('a unit that says which way is better, or better = "lower"')
    kind = kind or Kind.TIME
    better = own_way.one_of(Better) if own_way else kind.usual_direction
    return Metric(pattern, unit, better, kind), gated is None or gated.boolean()


_KEY_PARTS: Final = ("arch", "board", "mesh", "host")


def _key_parts(value: Value) -> tuple[str, ...]:
    for part in value.array():
        if part.string() not in _KEY_PARTS:
            raise part.refusal(f"one of {', '.join(_KEY_PARTS)}")
    if not {"board", "mesh"} <= set(value.strings()):
        raise value.refusal("at least board and mesh, without which boards would be mixed")
    return value.strings()


def _rules(value: Value) -> dict[str, RuleSettings]:
    return {current_code(code): _rule(item) for code, item in value.items()}


def _rule(value: Value) -> RuleSettings:
    severity, waive = value.optional("severity"), value.optional("waive")
    if waive and not waive.string().strip():
        raise waive.refusal("the reason to do without the rule")
    return RuleSettings(
        {name: item.number() for name, item in value.items() if name not in {"severity", "waive"}},
        severity.one_of(Severity) if severity else None,
        waive.string() if waive else None,
    )


def _database_of_file(value: Value) -> DatabaseUrl | None:
    expected = "sqlite:///FILE or postgresql+psycopg://USER@HOST/DATABASE"
    try:
        found = read_database(value.string(), Path(), "")
    except UsageError:
        raise DecodeError(value.path, expected, "what is no such URL") from None
    if found is not None and found.password is not None:
        expected = "no password, which all who can read this file would know"
        raise DecodeError(value.path, expected, "one: give the URL in TTNN_PERF_HISTORY instead")
    return found


def _confirm(value: Value) -> int | str:
    if value.raw == AB:
        return AB
    if not isinstance(value.raw, int):
        raise value.refusal(f"a whole number from 0, or {AB!r}")
    return value.integer()


_Seconds = Annotated[float, Coding(Value.integer)]
_FromOne = Coding(lambda value: value.integer(at_least=1))
_Codes = Annotated[
    tuple[str, ...], Coding(lambda value: tuple(code.upper() for code in value.strings()))
]

#: The value of ``confirm`` with which baselines' commits are measured, too; and how many passes
#: there are then.
AB: Final = "ab"
_USUAL_PASSES: Final = 4
#: Names of parameters that hold what somebody expects of a test, and not what the test is.
IDENTITY_IGNORES: Final = ("expected*", "*target*", "*margin*", "*threshold*", "*tolerance*")


class Settings(Struct, frozen=True):
    """The settings of a run, read by these annotations.

    Paths are absolute.

    ``timeout`` is the longest silence of a worker, in seconds, before it is killed; 0 for never.
    ``lock_timeout`` is how long a run waits for another that has a chip, ``preflight_timeout`` for
    ttnn to say what it can do. ``reset`` is a command.
    ``annotations``, ``step_summary`` and ``junit_properties`` are what CI is told by itself.
    ``identity_ignores`` are patterns of names of parameters that no baseline is filed under;
    ``key`` is what of the hardware they are filed under.
    ``observe``: what tests measure with helpers of their project is recorded; a PCC of at most
    ``observe_pcc_elements`` elements is computed anew beside the helper's. ``gate_steps`` are
    patterns of the steps of a helper's profiler that are gated where a test tells nothing better;
    ``measurements`` says by patterns what names of measurements mean.
    ``agents_accept``: coding agents may change baselines through ``ttnn-perf mcp``.
    ``build`` is the command that builds each side of ``ab`` and ``bisect``, ``builds_gb`` the room
    for the builds that are kept.
    """

    enabled: bool = False
    all: bool = False
    baselines: Path = Path("baselines")
    artifacts: Path = Path(".ttnn_perf")
    update: Update | None = None
    reason: str | None = None
    missing: Missing = Missing.FAIL
    too_noisy: TooNoisy = TooNoisy.WARN
    required: bool = False
    stale_days: int = 180
    isolate: Isolate = Isolate.AUTO
    confirm: Annotated[int | str, Coding(_confirm)] = _USUAL_PASSES
    timeout: _Seconds = 3600.0
    warmup: int = 3
    iterations: Annotated[int, _FromOne] = 10
    pcc: Annotated[float, Coding(_correlation)] = USUAL_PCC
    limits: PccLimits = PccLimits.ASKED
    json: Path | None = None
    markdown: Path | None = None
    html: Path | None = None
    gitlab: Path | None = None
    benchmark_json: Path | None = None
    history: Annotated[DatabaseUrl | None, Coding(_database_of_file, str)] = None
    annotations: bool = True
    step_summary: bool = True
    junit_properties: bool = True
    label: str | None = None
    replay: Path | None = None
    profiler: ProfilerKind = ProfilerKind.AUTO
    passes: PassChoice = PassChoice.BOTH
    reset: str | None = None
    checklist: Checklist = Checklist.ENFORCE
    select: _Codes = ()
    ignore: _Codes = ()
    rules: Annotated[Mapping[str, RuleSettings], Coding(_rules)] = {}
    lock_folder: Path | None = None
    lock_timeout: _Seconds = 3600.0
    preflight_timeout: Annotated[float, _FromOne] = 300.0
    broker: BrokerUse = BrokerUse.QUEUE
    markers: tuple[str, ...] = ()
    targets: Path | None = None
    identity_ignores: tuple[str, ...] = IDENTITY_IGNORES
    key: Annotated[tuple[str, ...], Coding(_key_parts)] = ("arch", "board", "mesh")
    gate_call_time: bool = False
    gate_first_call_time: bool = False
    gate_second_call_time: bool = False
    observe: Annotated[Observe, Coding(_observe)] = Observe.RECORD
    observe_pcc_elements: int = USUAL_PCC_ELEMENTS
    helper_asserts: HelperAsserts = HelperAsserts.KEEP
    gate_steps: tuple[str, ...] = ("inference*",)
    measurements: Annotated[Mapping[str, Declared], Coding(_measurements)] = {}
    agents_accept: bool = True
    build: str | None = None
    builds_gb: Annotated[int, _FromOne] = 100

    @property
    def confirm_passes(self) -> int:
        return self.confirm if isinstance(self.confirm, int) else _USUAL_PASSES


class TestSettings(Struct, frozen=True):
    """The settings of a test: its markers, completed by the run's settings.

    A bare number in ``tolerance`` or ``max_regression`` is stored under the name ``"*"``. ``gate``
    names metrics that are judged also where they only explain a time. ``region`` is the one that is
    taken of captures.
    """

    __test__ = False  # a record, not something for pytest to collect

    warmup: int
    iterations: int
    pcc: float
    batch: int | None = None
    tolerance: Mapping[str, float] = {}
    max_regression: Mapping[str, float] = {}
    target: Mapping[str, str | float] = {}
    waive: Mapping[str, str] = {}
    gate: tuple[str, ...] = ()
    region: str | None = None
    sweep: SweepPoint | None = None


def left_out(settings: Settings) -> tuple[Source, ...]:
    """Return the sources whose metrics a run does not miss."""
    if settings.passes is PassChoice.DEVICE:
        return (Source.WALL,)
    wall_only = settings.passes is PassChoice.WALL or settings.profiler is ProfilerKind.OFF
    return OF_DEVICE if wall_only else ()


def whole_number(name: str, value: object, *, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        message = f"{name}: expected a whole number of at least {least}, found {repr_of(value)}"
        raise UsageError(message)
    return value


def finite_number(name: str, value: object) -> float:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if isinstance(value, (int, float)) and is_number and -LARGEST <= value <= LARGEST:
        return value
    message = f"{name}: expected a finite number, found {repr_of(value)}"
    raise UsageError(message)


def load_settings(root: Path) -> Settings:
    """Return the configured settings of ``root``, with defaults.

    Raises:
        InputError: a file cannot be read, says something unknown, has a name that we do not read,
            or is one of two.
    """
    tables = [(file, table) for file in files_of(root) if (table := _table(file)) is not None]
    if not tables:
        return _placed(Settings(), root)
    if len(tables) > 1:
        problem = f"expected the settings in one file, found [tool.ttnn_perf] beside {OWN_FILE}"
        raise InputError(tables[1][0], f"{problem}: remove one of the two")
    file, table = tables[0]
    try:
        for name, value in Value(table).items():
            if name not in Settings.__struct_fields__:
                known = ", ".join(sorted(Settings.__struct_fields__))
                meant = did_you_mean(name, Settings.__struct_fields__)
                found = f"the unknown setting {name!r}{meant}"
                raise DecodeError(value.path, f"one of {known}", found)
        return _placed(decode(Settings, table), root)
    except DecodeError as error:
        raise InputError(file, _complaint(error, file.name)) from error


def _placed(settings: Settings, folder: Path) -> Settings:
    found: dict[str, Any] = {}
    for name in Settings.__struct_fields__:
        value = getattr(settings, name)
        if isinstance(value, Path):
            found[name] = folder / value.expanduser()
    if settings.history is not None and settings.history.file is not None:
        found["history"] = DatabaseUrl(folder / settings.history.file)
    return replace(settings, **found)


def project_settings() -> Settings:
    """Return what the project around the current folder configures."""
    return load_settings(find_root(Path.cwd()))


#: The files that make a folder pytest's root, with what they must hold; b"" for anything.
_ROOTS: Final = (
    ("pytest.toml", b""),
    (".pytest.toml", b""),
    ("pytest.ini", b""),
    (".pytest.ini", b""),
    (SHARED_FILE, b"[tool.pytest"),
    ("tox.ini", b"[pytest]"),
    ("setup.cfg", b"[tool:pytest]"),
)
#: The files that may say how tests are run and judged.
CONFIGURATION_FILES: Final = frozenset({OWN_FILE, *(name for name, _ in _ROOTS)})
#: The files that do so where there is none of these.
_PROJECTS: Final = ("setup.py", SHARED_FILE)


def find_root(start: Path) -> Path:
    """Return the folder that test ids and settings start from.

    The nearest one above that configures pytest or us; else that of the project; else ``start``.
    """
    folders = (start, *start.parents)
    for folder in folders:
        if files_of(folder) or any(_holds(folder / name, text) for name, text in _ROOTS):
            return folder
    for name in _PROJECTS:
        for folder in folders:
            if (folder / name).is_file():
                return folder
    return start


def _holds(file: Path, text: bytes) -> bool:
    try:
        # Somebody else's file: one that is no file, or of any size, is not for us to read.
        if not text or not file.is_file():
            return file.is_file()
        return text.decode() in read_text(file, most_bytes=LARGEST_TEXT_BYTES)
    except (OSError, InputError):
        return False


def _table(file: Path) -> Any:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib  # type: ignore[import-not-found, unused-ignore]
    try:
        document = tomllib.loads(read_text(file, most_bytes=LARGEST_TEXT_BYTES))
    except ValueError as cause:
        raise InputError(file, f"not valid TOML: {cause}") from cause
    if file.name == OWN_FILE:
        return document
    tool = document.get("tool", {})
    for name in tool:  # a misspelt table is refused, not ignored
        plain = name.lower().replace("-", "").replace("_", "")
        if plain.removeprefix("pytest") == "ttnnperf" and name != "ttnn_perf":
            raise InputError(file, f"expected the table [tool.ttnn_perf], found [tool.{name}]")
    return tool.get("ttnn_perf")


def _complaint(error: DecodeError, file_name: str) -> str:
    """Say what is wrong with a setting in the words of TOML."""
    table = "" if file_name == OWN_FILE else "[tool.ttnn_perf] "
    place = ".".join(str(step) for step in error.path)
    found = error.found.replace("an object", "a table")
    expected = error.expected.replace("an object", "a table")
    return f"{table}{place + ': ' if place else ''}expected {expected}, found {found}"


# The URL of a history database, whose password is never shown.

#: The variable that gives the URL in secret.
HISTORY_VARIABLE: Final = "TTNN_PERF_HISTORY"
#: What installs all that a database needs.
INSTALL: Final = "pip install 'pytest-ttnn-perf[history]'"
POSTGRESQL: Final = "postgresql+psycopg"
_EXPECTED: Final = (
    "expected sqlite:///FILE or postgresql+psycopg://USER:PASSWORD@HOST/DATABASE, found"
)
_UNREADABLE: Final = (
    f"{_EXPECTED} a URL whose parts cannot be read: in a password, write / ? # @ : and % as "
    "%2F %3F %23 %40 %3A and %25"
)


class DatabaseUrl:
    """The place of a database; ``str()`` and ``repr()`` leave out the password.

    ``file`` is that of SQLite, ``server`` the whole URL of PostgreSQL.
    """

    def __init__(self, file: Path | None = None, server: str = "") -> None:
        self.file, self.server = file, server

    @property
    def password(self) -> str | None:
        secret = urlsplit(self.server).password
        return None if secret is None else unquote(secret)

    def __str__(self) -> str:
        if self.file is not None:
            file, here = self.file, Path.cwd()
            return f"sqlite:///{file.relative_to(here) if here in file.parents else file}"
        parts = urlsplit(self.server)
        user, at, host = parts.netloc.rpartition("@")
        name, secret, _ = user.partition(":")
        return f"{POSTGRESQL}://{name}{secret and ':***'}{at}{host}{parts.path}"

    def __repr__(self) -> str:
        return f"<{self}>"

    def without_secrets(self, text: str) -> str:
        """Return a message about this database with the password blotted out."""
        return text.replace(self.password, "***") if self.password else text


def database_url(text: str, folder: Path) -> DatabaseUrl:
    """Read a URL, which no message repeats; files start at ``folder``.

    Raises:
        UsageError: it is not one of a database that can keep a history.

    >>> str(database_url("postgresql://ci:s3cret@db.example.org/perf", Path("/")))
    'postgresql+psycopg://ci:***@db.example.org/perf'
    """
    scheme, is_url, place = text.partition("://")
    message = ""
    if scheme == "sqlite":
        # Characters of a file's name stay as they are; what follows a ? is meant for drivers.
        if place[:1] == "/" and place[1:] not in {"", ":memory:"} and "?" not in place:
            return DatabaseUrl(folder / Path(place[1:]).expanduser())
        message = (
            "expected the file of an SQLite database, as in sqlite:///perf.db or "
            "sqlite:////srv/perf.db, found a URL without one, or with parameters"
        )
    elif not is_url or scheme not in {POSTGRESQL, "postgresql"}:
        known = is_url and scheme.isidentifier()
        found = f"a URL that begins with {scheme}://" if known else "no URL of a database"
        message = f"{_EXPECTED} {found}"
    else:
        message = _problem_of_server(text)
    if message:
        raise UsageError(message)
    return DatabaseUrl(server=text)


def _problem_of_server(url: str) -> str:
    try:
        parts = urlsplit(url)
        readable = parts.netloc.count("@") < 2 and parts.port != 0 and not parts.fragment
    except ValueError:  # a bracket or a port that is none: its text may be part of a password
        return _UNREADABLE
    if not readable or parts.path.count("/") != 1 or parts.path == "/":
        return _UNREADABLE
    if "password" in parts.query:
        return "password is a parameter of the history URL: expected it before the database"
    return ""


def check_installed(url: DatabaseUrl) -> None:
    """Check, without importing anything, that the needs of a database are installed.

    Raises:
        UsageError: it is not, or the folder of an SQLite file is missing.
    """
    needed = ("sqlalchemy",) if url.file is not None else ("sqlalchemy", "psycopg")
    for module in needed:
        if find_spec(module) is None:
            message = f"a history database needs {module}, which is not installed: {INSTALL}"
            raise UsageError(message)
    if url.file is not None and not url.file.parent.is_dir():
        message = f"{url}: expected the folder {url.file.parent}, found none: make it first"
        raise UsageError(message)


def with_options(settings: Settings, given: Mapping[str, Any], cwd: Path) -> Settings:
    """Return the settings with those of the command line.

    Its paths start at ``cwd``, where the user stands; those of the file start at its folder.
    """
    raw = dict(given)
    for name in {"select", "ignore"} & raw.keys():
        raw[name] = [code.strip() for code in raw[name].split(",") if code.strip()]
    url = raw.pop("history", None)  # which may have a password here
    read = _placed(decode(Settings, raw), cwd)
    found = {name: getattr(read, name) for name in raw}
    if url is not None:
        found["history"] = read_database(url, cwd, f"{option_of('history')}: ")
    return replace(settings, **found)


def with_environment(settings: Settings, environment: Mapping[str, str], cwd: Path) -> Settings:
    """Return the settings with what variables give instead of the file.

    Raises:
        UsageError: a variable says what cannot be meant.
    """
    text = environment.get(HISTORY_VARIABLE)
    if not text:  # as a secret of CI is that this job may not see
        return settings
    return replace(settings, history=read_database(text, cwd, f"{HISTORY_VARIABLE}: "))


def read_database(text: str, folder: Path, place: str) -> DatabaseUrl | None:
    """Return the database of a URL; None for an empty one.

    Raises:
        UsageError: it is no such URL; begins with ``place``, and does not repeat it.
    """
    if not text:
        return None
    try:
        return database_url(text, folder)
    except UsageError as error:
        message = f"{place}{error}"
        raise UsageError(message) from None
