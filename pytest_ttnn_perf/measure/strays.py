"""Modules that a worker loaded from the wrong one of two versions."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from types import ModuleType

    from pytest_ttnn_perf.core.assignment import ComparedVersions


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
