"""The installed ttnn, chips, host and loaded modules of a measurement."""

from __future__ import annotations

import json
import os
import shutil
import socket
import struct
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from pytest_ttnn_perf.core.hardware import member_name
from pytest_ttnn_perf.machine.chips import (
    ancestors,
)
from pytest_ttnn_perf.machine.environment import (
    SLOW_DISPATCH,
    installed_version,
    is_simulated,
    line_of,
)
from pytest_ttnn_perf.machine.processes import run_bounded
from pytest_ttnn_perf.machine.ttnn import cause_of, ttnn_folder

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from types import ModuleType
    from typing import IO

    from pytest_ttnn_perf.core.assignment import ComparedVersions


#: For a question of a command; a run has a setting.
TIMEOUT_S: Final = 60.0
_LONGEST_FOUND: Final = 60
_LONGEST_LOG: Final = 1 << 20
#: One line of JSON per answer, at once: a crash loses only what was not answered yet.
_SCRIPT: Final = """\
import importlib, json, os, sys
from importlib.machinery import PathFinder
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)  # ttnn logs to stdout, from C++
# Nothing from the current folder, where any file may be called so; ttnn from where it was found.
sys.path[:] = [entry for entry in sys.path if entry]
class Found:
    def find_spec(name, path=None, target=None):
        return PathFinder.find_spec(name, sys.argv[1:2]) if name == "ttnn" else None
sys.meta_path.insert(0, Found)
def with_profiler():
    os.environ["TT_METAL_DEVICE_PROFILER"] = "1"
    try:
        return ttnn.get_arch_name()
    finally:
        del os.environ["TT_METAL_DEVICE_PROFILER"]
def imported():
    global ttnn
    ttnn = importlib.import_module("ttnn")
questions = {
    "import": imported,
    "profiler": with_profiler,
    "arch": lambda: ttnn.get_arch_name(),
    "cluster": lambda: ttnn.cluster.get_cluster_type(),
}
os.environ.pop("TT_METAL_DEVICE_PROFILER", None)
for name in sys.argv[2:]:
    try:
        answer = {"says": str(questions[name]())}
    except BaseException as error:
        answer = {"error": type(error).__name__ + ": " + str(error)}
    print(json.dumps({"question": name, **answer}), file=answers, flush=True)
    if name == "import" and "error" in answer:
        break
"""


class Answers(NamedTuple):
    """Answers of ttnn by question; ``problem`` is why some are missing."""

    says: Mapping[str, str] = {}
    errors: Mapping[str, str] = {}
    problem: str | None = None
    timed_out: bool = False


def ask_ttnn(
    questions: Sequence[str],
    interpreter: Sequence[str],
    environment: Mapping[str, str],
    *,
    location: str,
    timeout_s: float = TIMEOUT_S,
) -> Answers:
    """Ask the ttnn package in ``location``; whatever happens there, this returns.

    The profiler's own variable is not passed on: "profiler" asks with it, and the others without.
    "cluster" takes the chips for as long as the process lives.
    """
    names = ["import", *questions]
    command = [*interpreter, "-c", _SCRIPT, str(Path(location).parent), *names]
    with (
        tempfile.TemporaryFile() as printed,
        tempfile.TemporaryFile() as log,
        tempfile.TemporaryDirectory(prefix="ttnn-perf-") as scratch,
    ):
        # Opening the cluster writes reports, by default into the current folder.
        variables = {**environment, "TT_METAL_LOGS_PATH": scratch}
        try:
            ending = run_bounded(
                command, timeout_s=timeout_s, stdout=printed, stderr=log, environment=variables
            )
        except OSError as error:
            return Answers(problem=f"{interpreter[0]} cannot be started: {error.strerror}")
        answered, logged = _text(printed), _text(log)
    says: dict[str, str] = {}
    errors: dict[str, str] = {}
    for line in answered.splitlines():
        try:
            document = json.loads(line)
            if "error" in document:
                errors[document["question"]] = cause_of(document["error"])
            else:
                says[document["question"]] = document["says"]
        except (ValueError, TypeError, LookupError, RecursionError):
            found = f"{line[:_LONGEST_FOUND]!r}"  # an interpreter that is none prints anything
            return Answers(says, errors, f"answered what cannot be read: {found}")
    if "import" in errors or {*says, *errors}.issuperset(names):
        return Answers(says, errors)
    why = f"did not answer within {timeout_s:g} s" if ending.hung else str(ending)
    # ttnn ends the process, without an exception, over settings that it does not understand.
    cause = cause_of(logged)
    problem = why if cause == logged else f"{why}: {cause}"
    return Answers(says, errors, problem, timed_out=ending.hung)


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read(_LONGEST_LOG).decode(errors="replace")


class Build(Struct, frozen=True):
    """The installed ttnn, without a ``version`` if it is missing.

    ``tracy`` and ``arch`` are None where unknown, ``arch`` also without hardware. ``problem`` says
    in one line why ttnn cannot be used. ``timed_out``: it did not answer in time.
    """

    version: str | None
    location: str | None = None
    tracy: bool | None = None
    arch: str | None = None
    problem: str | None = None
    timed_out: bool = False


def installed_ttnn() -> Build:
    """Return the version and the folder of the installed ttnn."""
    folder = ttnn_folder()
    if folder is None:
        return Build(None)
    version = installed_version("ttnn") or "unknown"  # used from its source tree
    return Build(version, str(folder))


_WITHOUT_TRACY: Final = "requires a Tracy-enabled build"
#: What ``get_arch_name`` says where there is no hardware.
_NO_ARCH: Final = "invalid"


def preflight(
    interpreter: Sequence[str],
    environment: Mapping[str, str],
    *,
    timeout_s: float = TIMEOUT_S,
) -> Build:
    """Look at the installed ttnn; a failure is its ``problem``."""
    found = installed_ttnn()
    if found.location is None:
        return found
    answers = ask_ttnn(
        ("profiler", "arch"), interpreter, environment, location=found.location, timeout_s=timeout_s
    )
    arch, errors = answers.says.get("arch", _NO_ARCH), answers.errors
    return replace(
        found,
        tracy=_has_tracy(answers),
        arch=None if arch == _NO_ARCH else member_name(arch),
        problem=errors.get("import") or errors.get("arch") or answers.problem,
        timed_out=answers.timed_out,
    )


def _has_tracy(answers: Answers) -> bool | None:
    """Compare the answers with and without the profiler; None if unknown."""
    error = answers.errors.get("profiler")
    if error is None:
        return True if "profiler" in answers.says else None
    if _WITHOUT_TRACY in error:
        return False
    return None if error == answers.errors.get("arch") else True


_SMI_TIMEOUT_S: Final = 30.0


def tt_smi_snapshot(environment: Mapping[str, str]) -> str | None:
    """Return the output of ``tt-smi -s``; None without one.

    It reads the boards' telemetry, and takes no chip from anybody.
    """
    program = shutil.which("tt-smi", path=environment.get("PATH", ""))
    if program is None:
        return None
    with tempfile.TemporaryFile() as output:
        try:
            run_bounded(
                [program, "-s"],
                timeout_s=_SMI_TIMEOUT_S,
                stdout=output,
                stderr=output,
                environment=environment,
            )
        except OSError:
            return None
        printed = _text(output)
    return printed[printed.index("{") :] if "{" in printed else None  # some log before it


# Variables that spoil times.
#
# tt-metal turns some of its options on when a variable is there, whatever it holds, ``0`` included;
# others only when it begins with ``1``.

_OVERRIDES: Final = "TTNN_CONFIG_OVERRIDES"
_PRINT: Final = "TT_METAL_DPRINT_"
#: They say how to print, not that something is printed.
_PRINT_SETTINGS: Final = frozenset({
    "TT_METAL_DPRINT_CHIPS", "TT_METAL_DPRINT_FILE", "TT_METAL_DPRINT_MESH_COORDS",
    "TT_METAL_DPRINT_ONE_FILE_PER_RISC", "TT_METAL_DPRINT_PREPEND_DEVICE_CORE_RISC",
    "TT_METAL_DPRINT_RISCVS",
})  # fmt: skip
#: Settings of ttnn that make every operation slower, and the value that does.
_SLOWING_SETTINGS: Final = {
    "enable_logging": True,
    "enable_comparison_mode": True,
    "enable_graph_report": True,
    "enable_graph_python_stack_traces": True,
    "enable_detailed_buffer_report": True,
    "enable_detailed_tensor_report": True,
    "enable_fast_runtime_mode": False,
}


class Conflict(Struct, frozen=True):
    """An environment variable that makes times meaningless; several joined by ``+``.

    ``why`` goes on from the variable: "makes kernels check themselves".
    """

    variable: str
    value: str
    why: str
    remedy: str

    @property
    def sentence(self) -> str:
        """The setting, and why it must not be."""
        several = " + " in self.variable  # the names say it all
        return f"{self.variable if several else f'{self.variable}={self.value}'} {self.why}"

    def __str__(self) -> str:
        return f"{self.sentence}: {self.remedy}"


_INSTRUMENTS: Final = "instruments the kernels, which changes their times"
_OF_PROFILER: Final = "is an option of the device profiler, which changes the times"
_PRINTS_AFTER_CALLS: Final = "profiles every call of a tt-lang operation"
_REFUSED: Final = "instruments the kernels, and a ttnn without Tracy refuses every device call"
#: What variables do whatever they hold.
_IF_SET: Final = {
    "TT_METAL_DEVICE_PROFILER": f"{_REFUSED}, even if 0",
    "TT_METAL_STREAMING_PROFILER": _REFUSED,
    "TT_METAL_TRACY_MID_RUN_PUSH": _OF_PROFILER,
    "TT_METAL_WATCHER": "makes the kernels report to a watcher, even if 0",
    "TT_METAL_LLK_ASSERTS": "makes the kernels check themselves, even if 0",
    "TT_METAL_LIGHTWEIGHT_KERNEL_ASSERTS": "makes the kernels check themselves, even if 0",
    "TT_METAL_DISPATCH_DATA_COLLECTION": "records every dispatch, even if 0",
    "TT_METAL_NULL_KERNELS": "lets no kernel do its work, even if 0",
    "TT_METAL_KERNELS_EARLY_RETURN": "lets no kernel do its work, even if 0",
}
#: What they do if they begin with a 1.
_IF_ONE: Final = {
    "TT_METAL_DEVICE_PROFILER_NOC_EVENTS": _INSTRUMENTS,
    "TT_METAL_DEVICE_DEBUG_DUMP_ENABLED": _INSTRUMENTS,
    "TT_METAL_MEM_PROFILER": "records every buffer",
    "TT_METAL_VALIDATE_PROGRAM_BINARIES": "checks every program",
    **dict.fromkeys(
        (
            "TT_METAL_DEVICE_PROFILER_DISPATCH", "TT_METAL_PROFILER_SYNC",
            "TT_METAL_TRACE_PROFILER", "TT_METAL_PROFILER_TRACE_TRACKING",
            "TT_METAL_PROFILER_MID_RUN_DUMP", "TT_METAL_PROFILER_CPP_POST_PROCESS",
            "TT_METAL_PROFILER_SUM", "TT_METAL_PROFILER_ACCUMULATE",
            "TT_METAL_PROFILER_DISABLE_DUMP_TO_FILES", "TT_METAL_PROFILER_DISABLE_PUSH_TO_TRACY",
        ),
        _OF_PROFILER,
    ),
}  # fmt: skip
#: What they do unless they are empty or 0.
_UNLESS_ZERO: Final = {
    "TT_METAL_PROFILE_PERF_COUNTERS": _INSTRUMENTS,
    "TTNN_OP_PROFILER": "records every operation",
    "TT_METAL_LLK_SANITIZER": "makes the kernels check themselves",
    "TT_METAL_NOC_DEBUG_DUMP": "makes the kernels record their transfers",
    "TT_METAL_RECORD_NOC_TRANSFER_DATA": "records every transfer",
    "TTLANG_PERF_DUMP": _PRINTS_AFTER_CALLS,
    "TTLANG_AUTO_PROFILE": _PRINTS_AFTER_CALLS,
    "TTLANG_SIGNPOST_PROFILE": _PRINTS_AFTER_CALLS,
    "TTLANG_PERF_SERV": "waits for a key after a call",
    "TTLANG_COMPILE_ONLY": "lets no tt-lang operation do its work",
}
_PROFILERS: Final = (
    "TT_METAL_DEVICE_PROFILER", "TT_METAL_DEVICE_PROFILER_NOC_EVENTS",
    "TT_METAL_PROFILE_PERF_COUNTERS", "TT_METAL_STREAMING_PROFILER",
)  # fmt: skip
_TTLANG: Final = ("TTLANG_PERF_DUMP", "TTLANG_AUTO_PROFILE", "TTLANG_SIGNPOST_PROFILE")


def conflicts(environment: Mapping[str, str]) -> tuple[Conflict, ...]:
    """Return what keeps wall times from meaning anything; the worst first."""
    return (
        *impossible(environment),
        *(
            Conflict(name, environment[name], why, f"unset {name}")
            for name in sorted(environment)
            if (why := _harm(name, environment))
        ),
        *_overrides(environment),
    )


#: What tt-lang prints depends on the place of these files, which they move.
_MOVES: Final = ("TT_METAL_PROFILER_DIR", "TT_METAL_DEVICE_PROFILER_NOC_EVENTS_RPT_PATH")


def conflicts_with(own: Collection[str], environment: Mapping[str, str]) -> tuple[Conflict, ...]:
    """Return what spoils a profile of tt-lang that sets its ``own`` variables."""
    others = {name: value for name, value in environment.items() if name not in own}
    moved = [name for name in _MOVES if others.get(name)]
    why = "moves files that tt-lang looks for below TT_METAL_HOME"
    return (
        *(Conflict(name, others.pop(name), why, f"unset {name}") for name in moved),
        *conflicts(others),
    )


def impossible(environment: Mapping[str, str]) -> tuple[Conflict, ...]:
    """Return the combinations that never work, whatever is measured, a profile included."""
    on = [name for name in sorted(environment) if _harm(name, environment)]
    # Set to 0 it is no profiler, though a build without Tracy does not even bear that.
    profiler = next((name for name in _PROFILERS if _not_zero(environment.get(name, ""))), None)
    printing = next((name for name in on if name.startswith(_PRINT)), None)
    ttlang = [name for name in _TTLANG if name in on]
    found = []
    if profiler and printing:
        why = "are refused together: prints and profile share the same memory"
        found.append((profiler, printing, why))
    if profiler and "TT_METAL_WATCHER" in on:
        why = "damage each other's data: watcher and profile share the same memory"
        found.append((profiler, "TT_METAL_WATCHER", why))
    if "TTLANG_AUTO_PROFILE" in ttlang:
        why = "cannot be used together: each profiles the same kernels in its own way"
        others = (name for name in ttlang if name != "TTLANG_AUTO_PROFILE")
        found += [("TTLANG_AUTO_PROFILE", other, why) for other in others]
    if ttlang and environment.get("TT_METAL_PROFILER_DIR"):
        why = "cannot be used together: tt-lang reads the profile from TT_METAL_HOME only"
        found.append(("TT_METAL_PROFILER_DIR", ttlang[0], why))
    return tuple(
        Conflict(
            f"{one} + {two}",
            f"{environment[one]} + {environment[two]}",
            why,
            f"unset {one} or {two}",
        )
        for one, two, why in found
    )


def _harm(name: str, environment: Mapping[str, str]) -> str | None:
    """Return what a variable does to all times, if anything."""
    if name == SLOW_DISPATCH:  # a simulator has no times that it could spoil
        return None if is_simulated(environment) else "sends every program by itself, even if 0"
    if name.startswith(_PRINT):
        return None if name in _PRINT_SETTINGS else "makes the kernels print"
    value = environment[name]
    if value.startswith("1") and name in _IF_ONE:
        return _IF_ONE[name]
    return (
        _UNLESS_ZERO.get(name) if _not_zero(value) and name in _UNLESS_ZERO else _IF_SET.get(name)
    )


def _not_zero(value: str) -> bool:
    return value not in {"", "0"}


def _overrides(environment: Mapping[str, str]) -> Iterator[Conflict]:
    text = environment.get(_OVERRIDES)
    if not text:
        return
    try:
        settings = json.loads(text)
    except (ValueError, RecursionError):
        settings = None
    if not isinstance(settings, dict):
        why = "is not a JSON object, and makes ttnn end the process that imports it"
        yield Conflict(_OVERRIDES, text, why, f"correct or unset {_OVERRIDES}")
        return
    slowing = [name for name, value in _SLOWING_SETTINGS.items() if settings.get(name) is value]
    if slowing:
        why = f"makes every operation slower: {', '.join(slowing)}"
        yield Conflict(_OVERRIDES, text, why, f"take {', '.join(slowing)} out of {_OVERRIDES}")


# The broker tt-device-mcp, which hands out the devices of a machine.

BROKER: Final = "tt-device-mcp"
#: The command that resets its devices.
BROKER_RESET: Final = f"{BROKER} reset"
#: Names its socket, where it is not in one of its usual places.
_SOCKET: Final = "TT_DEVICE_MCP_SOCKET"
_OF_HOST: Final = "run/tt-device-broker/broker.sock"
#: What the control groups of its jobs are called, where it runs them as their users.
_JOB: Final = "ttdev-job-"
#: A socket whose owner is alive answers at once.
_PATIENCE_S: Final = 5.0


class Broker(NamedTuple):
    """A device broker that is up: its queue and its resets count.

    ``runs_us``: this process belongs to one of its jobs.
    """

    socket: Path
    runs_us: bool


def find_broker(environment: Mapping[str, str], root: Path = Path("/")) -> Broker | None:
    own = root / f"tmp/tt-device-mcp-{os.getuid()}/state/daemon.sock"
    named = environment.get(_SOCKET)
    for file in (Path(named),) if named else (root / _OF_HOST, own):
        pid = _listener(file)
        if pid is not None:
            jobs = line_of(root / "proc/self/cgroup") or ""
            return Broker(file, _JOB in jobs or pid in list(ancestors(root / "proc"))[1:])
    return None


def _listener(file: Path) -> int | None:
    """Return the process behind a socket, 0 if unknown, None without one."""
    try:
        if not file.is_socket():
            return None
    except OSError:  # in a folder of another user's
        return None
    with socket.socket(socket.AF_UNIX) as link:
        link.settimeout(_PATIENCE_S)
        try:
            link.connect(str(file))
        except (FileNotFoundError, ConnectionRefusedError):  # left behind
            return None
        except OSError:  # not for this user, or too busy to answer
            return 0
        layout = "3i"  # process, user, group
        peer = link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize(layout))
        return int(struct.unpack(layout, peer)[0])


# Modules that a worker loaded from the wrong one of two versions.

#: This plugin measures both sides, and is the same for both.
_TOOL: Final = "pytest_ttnn_perf"
_INSTALLED: Final = frozenset({"site-packages", "dist-packages"})
#: Where projects keep their packages, seen from their root.
_PLACES: Final = ("", "src", "lib", "python")


class Stray(NamedTuple):
    """A module that is not of the version under test."""

    name: str
    file: str


def strays(
    modules: Mapping[str, ModuleType],
    versions: ComparedVersions,
    *,
    cwd: Path,
    ours: Sequence[Path] = (),
) -> list[Stray]:
    """Return the modules of the other version, or installed copies of it.

    Either would make a comparison one of the code with itself. What is installed in an environment
    that lies in the project is no part of it, nor is what lies in ``ours``.
    """
    shared = [versions.other / folder for folder in versions.shared]
    let_off = [*ours, *shared, Path(sys.prefix), Path(sys.base_prefix)]
    if versions.own.is_relative_to(versions.other):  # a build that is kept in the project
        let_off.append(versions.own)
    let_off = [folder for folder in let_off if not versions.other.is_relative_to(folder)]
    found = []
    for name, module in modules.items():
        file = vars(module).get("__file__") if hasattr(module, "__dict__") else None
        if not isinstance(file, str) or name.partition(".")[0] == _TOOL:
            continue
        place = Path(os.path.realpath(file))
        installed = not _INSTALLED.isdisjoint(place.parts)
        if not installed and place.is_relative_to(versions.other):
            if not any(place.is_relative_to(folder) for folder in let_off):
                found.append(Stray(name, str(place)))
        elif installed and any(file.exists() for file in _own_files(name, versions, cwd)):
            found.append(Stray(name, str(place)))
    return found


def _own_files(name: str, versions: ComparedVersions, cwd: Path) -> Iterator[Path]:
    if "." in name or name in sys.stdlib_module_names:
        return
    for root in dict.fromkeys((versions.own, cwd)):
        for place in _PLACES:
            if not any(Path(place, name).is_relative_to(shared) for shared in versions.shared):
                yield root / place / name / "__init__.py"
                yield root / place / f"{name}.py"


def own_place(stray: Stray, versions: ComparedVersions, cwd: Path) -> Path:
    top = stray.name.partition(".")[0]
    found = (file for file in _own_files(top, versions, cwd) if file.exists())
    file = next(found, versions.own / "src" / top / "__init__.py")
    return import_root(Stray(top, str(file)))


def import_root(stray: Stray) -> Path:
    """Return the folder of ``sys.path`` that a module was found in.

    >>> import_root(Stray("model.layers", "/project/src/model/layers.py")).as_posix()
    '/project/src'
    >>> import_root(Stray("model", "/project/src/model/__init__.py")).as_posix()
    '/project/src'
    """
    path = Path(stray.file)
    path = path.parent if path.stem == "__init__" else path.with_suffix("")
    for _ in stray.name.split("."):
        path = path.parent
    return path
