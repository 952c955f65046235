"""The installed ttnn, asked in a process of its own."""

from __future__ import annotations

import contextlib
import hashlib
import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from pytest_ttnn_perf.core.codec import Value
from pytest_ttnn_perf.core.errors import TtnnPerfError
from pytest_ttnn_perf.core.files import read_json, write_text
from pytest_ttnn_perf.core.hardware import member_name
from pytest_ttnn_perf.machine.chips import DEVICES
from pytest_ttnn_perf.machine.environment import is_simulated
from pytest_ttnn_perf.machine.processes import run_bounded
from pytest_ttnn_perf.machine.ttnn import Build, cause_of, installed_ttnn

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import IO


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


class Answers(Struct, frozen=True):
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


_WITHOUT_TRACY: Final = "requires a Tracy-enabled build"
#: What ``get_arch_name`` says where there is no hardware.
_NO_ARCH: Final = "invalid"
_FORMAT: Final = 1


def preflight(
    interpreter: Sequence[str],
    environment: Mapping[str, str],
    cache: Path | None,
    *,
    devices: Path = DEVICES,
    timeout_s: float = TIMEOUT_S,
) -> Build:
    """Look at the installed ttnn; a failure is its ``problem``.

    Whether a build has Tracy is kept in the folder ``cache``. No process is started where that is
    known and there is no hardware to be asked for its name.
    """
    found = installed_ttnn()
    if found.location is None:
        return found
    file = None if cache is None else cache / "ttnn-build.json"
    kept = None if file is None else _read_cached(file, found)
    if kept is not None and not devices.is_dir() and not is_simulated(environment):
        return replace(found, tracy=kept)
    questions = ("arch",) if kept is not None else ("profiler", "arch")
    answers = ask_ttnn(
        questions, interpreter, environment, location=found.location, timeout_s=timeout_s
    )
    arch, errors = answers.says.get("arch", _NO_ARCH), answers.errors
    build = replace(
        found,
        tracy=_has_tracy(answers) if kept is None else kept,
        arch=None if arch == _NO_ARCH else member_name(arch),
        problem=errors.get("import") or errors.get("arch") or answers.problem,
        timed_out=answers.timed_out,
    )
    if file is not None and kept is None and build.tracy is not None:
        document = {"format": _FORMAT, "build": _stamp(build), "tracy": build.tracy}
        with contextlib.suppress(TtnnPerfError):  # it is found out again next time
            write_text(file, json.dumps(document) + "\n")
    return build


def _has_tracy(answers: Answers) -> bool | None:
    """Compare the answers with and without the profiler; None if unknown."""
    error = answers.errors.get("profiler")
    if error is None:
        return True if "profiler" in answers.says else None
    if _WITHOUT_TRACY in error:
        return False
    return None if error == answers.errors.get("arch") else True


def _read_cached(file: Path, build: Build) -> bool | None:
    def decode(document: object) -> tuple[str, bool]:
        root = Value(document)
        return root.field("build").string(), root.field("tracy").boolean()

    with contextlib.suppress(TtnnPerfError):  # damage is as good as nothing
        kept, tracy = read_json(file, decode)
        return tracy if kept == _stamp(build) else None
    return None


def _stamp(build: Build) -> str:
    """Return a hash that changes whenever ttnn is installed or built anew."""
    folder = Path(build.location or "")
    libraries = [*folder.glob("*.so"), *folder.glob("build/lib/*.so")]
    parts = [f"{_FORMAT} {build.version} {folder}"]
    for file in sorted([folder / "__init__.py", *libraries]):
        with contextlib.suppress(OSError):
            state = file.stat()
            parts.append(f"{file.name} {state.st_size} {state.st_mtime_ns}")
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]


def compiler_places(
    build: Build, environment: Mapping[str, str], root: Path = Path("/")
) -> tuple[Path, ...]:
    """Return the places where TTNN looks for its compiler.

    Public wheels come without it.
    """
    homes = [environment.get("TT_METAL_HOME"), build.location]
    places = [Path(home, "runtime", "sfpi") for home in homes if home]
    return (*places, root / "opt" / "tenstorrent" / "sfpi")


def has_compiler(place: Path) -> bool:
    """Return whether the compiler is in a folder."""
    return (place / "compiler" / "bin" / "riscv-tt-elf-g++").is_file()
