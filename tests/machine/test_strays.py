"""Which modules are of the version under test, and which only look so."""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf.core.assignment import ComparedVersions
from pytest_ttnn_perf.machine.inspection import Stray, strays

if TYPE_CHECKING:
    from pathlib import Path


def module(name: str, file: Path | None) -> ModuleType:
    made = ModuleType(name)
    if file is not None:
        made.__file__ = str(file)
    return made


@pytest.fixture
def apart(tmp_path: Path) -> ComparedVersions:
    """Two versions of a project that has a package below ``src``."""
    for side in ("own", "other"):
        package = tmp_path / side / "src" / "model"
        package.mkdir(parents=True)
        (package / "__init__.py").touch()
    return ComparedVersions(tmp_path / "own", tmp_path / "other")


def found(
    apart: ComparedVersions, file: Path | None, name: str = "model.layers", **more: object
) -> list[Stray]:
    return strays({name: module(name, file)}, apart, cwd=apart.own, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "file", "stray"),
    [
        ("model.layers", "other/src/model/layers.py", True),
        ("model.layers", "link/src/model/layers.py", True),
        ("model.layers", "own/src/model/layers.py", False),
        ("model.layers", "elsewhere/layers.py", False),
        ("model.layers", None, False),
        ("native", "other/build/native.so", False),
        ("native", "other/builder/native.so", True),
        ("made", "other/.ttnn_perf/passes/1-ab/tmp/made.py", False),
        ("pytest_ttnn_perf.cli", "other/pytest_ttnn_perf/cli.py", False),
        # Both sides would run what is installed: what is measured is neither version.
        ("model", "lib/site-packages/model/__init__.py", True),
        ("numpy", "lib/site-packages/numpy/__init__.py", False),
        ("types", "lib/site-packages/types.py", False),
    ],
    ids=["other version", "behind a link", "own", "elsewhere", "no file", "shared",
         "beside what is shared", "the worker's", "the plugin", "installed", "not the project's",
         "of Python itself"],
)  # fmt: skip
def test_modules_that_are_not_of_the_version_under_test(
    apart: ComparedVersions, tmp_path: Path, name: str, file: str | None, stray: bool
) -> None:
    (tmp_path / "link").symlink_to(apart.other)
    (apart.own / "types.py").touch()
    shared = ComparedVersions(apart.own, apart.other, ("build",))
    place = tmp_path / file if file else None
    ours = apart.other / ".ttnn_perf/passes/1-ab"
    expected = [Stray(name, str(place and place.resolve()))] if stray else []
    assert found(shared, place, name, ours=(ours,)) == expected
