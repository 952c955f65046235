"""Which modules are of the version under test, and which only look so."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf.observe.strays import Stray, strays
from pytest_ttnn_perf.records.messages import Apart

if TYPE_CHECKING:
    from pathlib import Path


def module(name: str, file: Path | None) -> ModuleType:
    made = ModuleType(name)
    if file is not None:
        made.__file__ = str(file)
    return made


@pytest.fixture
def apart(tmp_path: Path) -> Apart:
    """Two versions of a project that has a package below ``src``."""
    for side in ("own", "other"):
        package = tmp_path / side / "src" / "model"
        package.mkdir(parents=True)
        (package / "__init__.py").touch()
    return Apart(tmp_path / "own", tmp_path / "other")


def found(
    apart: Apart, file: Path | None, name: str = "model.layers", **more: object
) -> list[Stray]:
    return strays({name: module(name, file)}, apart, cwd=apart.own, **more)  # type: ignore[arg-type]


def test_modules_of_the_other_version_are_found(apart: Apart) -> None:
    file = apart.other / "src/model/layers.py"
    assert found(apart, file) == [Stray("model.layers", str(file))]


def test_they_are_found_behind_a_link(apart: Apart, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(apart.other)
    assert found(apart, link / "src/model/layers.py")


@pytest.mark.parametrize("file", ["own/src/model/layers.py", "elsewhere/layers.py", None])
def test_modules_of_its_own_and_of_others_are_fine(
    apart: Apart, tmp_path: Path, file: str | None
) -> None:
    assert not found(apart, tmp_path / file if file else None)


def test_an_environment_within_the_project_is_no_part_of_it(
    apart: Apart, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not found(
        apart, apart.other / ".venv/lib/python3.12/site-packages/numpy/core.py", "numpy"
    )
    python = apart.other / "env"
    assert found(apart, python / "lib/python3.12/json/decoder.py", "json.decoder")
    monkeypatch.setattr(sys, "prefix", str(python))
    assert not found(apart, python / "lib/python3.12/json/decoder.py", "json.decoder")


def test_what_both_are_to_share_is_fine_and_nothing_beside_it(apart: Apart) -> None:
    shared = Apart(apart.own, apart.other, ("build",))
    assert not found(shared, apart.other / "build/native.so", "native")
    assert found(shared, apart.other / "builder/native.so", "native")


def test_files_of_the_worker_itself_are_fine(apart: Apart) -> None:
    folder = apart.other / ".ttnn_perf/passes/1-ab"
    assert not found(apart, folder / "tmp/made.py", "made", ours=(folder,))


def test_a_copy_that_is_installed_is_not_the_version_under_test(
    apart: Apart, tmp_path: Path
) -> None:
    """Both sides would run it: what is measured is neither version."""
    site = tmp_path / "lib/site-packages"
    assert found(apart, site / "model/__init__.py", "model")
    assert not found(apart, site / "numpy/__init__.py", "numpy"), "the project has none"
    (apart.own / "types.py").touch()
    assert not found(apart, site / "types.py", "types"), "of Python itself"


def test_the_plugin_measures_both(apart: Apart) -> None:
    assert not found(apart, apart.other / "pytest_ttnn_perf/cli.py", "pytest_ttnn_perf.cli")


def test_modules_that_are_no_modules_are_passed_by(apart: Apart) -> None:
    assert strays({"odd": object()}, apart, cwd=apart.own) == []  # type: ignore[dict-item]
