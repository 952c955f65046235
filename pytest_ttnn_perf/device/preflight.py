"""What the installed ttnn can do, found out without importing it here."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import json
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._support.atomic import write_text
from pytest_ttnn_perf._support.errors import TtnnPerfError
from pytest_ttnn_perf._support.json_text import read_json
from pytest_ttnn_perf.device.leases import DEVICES, is_simulated
from pytest_ttnn_perf.device.throwaway import TIMEOUT_S, Answers, Question, ask_ttnn
from pytest_ttnn_perf.model.build import Build
from pytest_ttnn_perf.model.encoding.value import Value
from pytest_ttnn_perf.model.hardware import member_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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
    """Return what is known of the installed ttnn; what keeps it from answering is its problem.

    Whether a build has Tracy is kept in the folder ``cache``. No process is started where that is
    known and there is no hardware to be asked for its name.
    """
    found = installed()
    if found.location is None:
        return found
    kept = _kept(cache, found)
    if kept is not None and not devices.is_dir() and not is_simulated(environment):
        return replace(found, tracy=kept)
    questions = (Question.ARCH,) if kept is not None else (Question.PROFILER, Question.ARCH)
    answers = ask_ttnn(
        questions, interpreter, environment, location=found.location, timeout_s=timeout_s
    )
    build = _build(found, answers, tracy=kept)
    if cache is not None and kept is None and build.tracy is not None:
        _keep(cache, build)
    return build


def installed() -> Build:
    """Return the version and the folder of ttnn, from what is installed, without running any."""
    try:
        spec = importlib.util.find_spec("ttnn")
    except ValueError:  # something that is no package stands in for it
        spec = None
    # A folder of that name is no package; a simulator that stands in for it has another name.
    if spec is None or spec.origin is None or spec.name != "ttnn":
        return Build(None)
    try:
        version = metadata.version("ttnn")
    except metadata.PackageNotFoundError:
        version = "unknown"  # used from its source tree
    return Build(version, str(Path(spec.origin).parent))


def _build(found: Build, answers: Answers, *, tracy: bool | None) -> Build:
    arch = answers.says.get(Question.ARCH, _NO_ARCH)
    told = (answers.errors.get(question) for question in (Question.IMPORT, Question.ARCH))
    problem = next((error for error in told if error is not None), answers.problem)
    return replace(
        found,
        tracy=_has_tracy(answers) if tracy is None else tracy,
        arch=None if arch == _NO_ARCH else member_name(arch),
        problem=problem,
    )


def _has_tracy(answers: Answers) -> bool | None:
    """Tell from what setting the profiler's variable has changed; None where that is nothing."""
    error = answers.errors.get(Question.PROFILER)
    if error is None:
        return True if Question.PROFILER in answers.says else None
    if _WITHOUT_TRACY in error:
        return False
    return None if error == answers.errors.get(Question.ARCH) else True


def _kept(cache: Path | None, build: Build) -> bool | None:
    """Return whether this very build has Tracy, if that was kept; damage is as good as nothing."""
    if cache is None:
        return None
    with contextlib.suppress(TtnnPerfError):
        kept, tracy = read_json(_file(cache), _decoded)
        return tracy if kept == _stamp(build) else None
    return None


def _decoded(document: object) -> tuple[str, bool]:
    root = Value(document)
    return root.field("build").string(), root.field("tracy").boolean()


def _keep(cache: Path, build: Build) -> None:
    document = {"format": _FORMAT, "build": _stamp(build), "tracy": build.tracy}
    with contextlib.suppress(TtnnPerfError):  # it is found out again next time
        write_text(_file(cache), json.dumps(document) + "\n")


def _file(cache: Path) -> Path:
    return cache / "ttnn-build.json"


def _stamp(build: Build) -> str:
    """Return what changes whenever ttnn is installed or built anew."""
    folder = Path(build.location or "")
    libraries = [*folder.glob("*.so"), *folder.glob("build/lib/*.so")]
    parts = [f"{_FORMAT} {build.version} {folder}"]
    for file in sorted([folder / "__init__.py", *libraries]):
        with contextlib.suppress(OSError):
            state = file.stat()
            parts.append(f"{file.name} {state.st_size} {state.st_mtime_ns}")
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]
