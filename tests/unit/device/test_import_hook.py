"""A module's import is noticed: once, after it, and without anybody importing it for that."""

from __future__ import annotations

import importlib
import importlib.resources
import importlib.util
import inspect
import pkgutil
import sys
from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf.device.ttnn import when_imported

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import ModuleType

#: The module that is waited for; no package is called so.
NAME = "awaited_by_a_test"
SOURCE = "VALUE = 1\n\n\ndef answer():\n    return 42\n"


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a folder whose modules are found; afterwards nothing is left of them."""
    meta_path = list(sys.meta_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    sys.meta_path[:] = meta_path
    for name in [name for name in sys.modules if name.partition(".")[0] == NAME]:
        del sys.modules[name]


@pytest.fixture
def noticed(site: Path) -> list[ModuleType]:  # noqa: ARG001 (what is left of it goes with the folder)
    """Return what is noticed of the module from now on."""
    found: list[ModuleType] = []
    when_imported(NAME, found.append)
    return found


def write_module(site: Path, source: str = SOURCE) -> None:
    (site / f"{NAME}.py").write_text(source, encoding="utf-8")
    importlib.invalidate_caches()


def write_package(site: Path, source: str = SOURCE) -> None:
    package = site / NAME
    (package / "part").mkdir(parents=True)
    (package / "__init__.py").write_text(source, encoding="utf-8")
    (package / "part" / "__init__.py").write_text("DEEP = 2\n", encoding="utf-8")
    (package / "data.txt").write_text("beside", encoding="utf-8")
    importlib.invalidate_caches()


def test_a_module_that_is_loaded_is_noticed_at_once(site: Path) -> None:
    write_module(site)
    module, before = importlib.import_module(NAME), list(sys.meta_path)
    noticed: list[ModuleType] = []
    when_imported(NAME, noticed.append)
    assert noticed == [module]
    assert sys.meta_path == before


def test_a_module_that_is_loaded_later_is_noticed_once_it_is_whole(site: Path) -> None:
    write_module(site)
    before = list(sys.meta_path)
    noticed: list[tuple[ModuleType, int]] = []
    when_imported(NAME, lambda module: noticed.append((module, module.VALUE)))
    assert NAME not in sys.modules
    assert noticed == []

    module = importlib.import_module(NAME)
    assert noticed == [(module, 1)]
    assert sys.meta_path == before
    assert importlib.import_module(NAME) is module
    assert len(noticed) == 1


def test_other_modules_are_none_of_its_business(site: Path, noticed: list[ModuleType]) -> None:
    write_module(site)
    (site / f"{NAME}_too.py").write_text("", encoding="utf-8")
    other = importlib.import_module(f"{NAME}_too")
    sys.modules.pop(f"{NAME}_too")
    assert noticed == []
    assert type(other.__loader__).__name__ == "SourceFileLoader"


def test_a_module_that_is_absent_may_come_later(site: Path, noticed: list[ModuleType]) -> None:
    for _ in range(2):
        with pytest.raises(ModuleNotFoundError, match=f"^No module named '{NAME}'$"):
            importlib.import_module(NAME)
    assert importlib.util.find_spec(NAME) is None
    write_module(site)
    assert [importlib.import_module(NAME)] == noticed


def test_a_folder_of_that_name_is_not_taken_for_it(site: Path, noticed: list[ModuleType]) -> None:
    (site / NAME).mkdir()
    importlib.invalidate_caches()
    assert importlib.import_module(NAME).__file__ is None
    assert noticed == []

    del sys.modules[NAME]
    (site / NAME / "__init__.py").write_text("", encoding="utf-8")
    importlib.invalidate_caches()
    assert [importlib.import_module(NAME)] == noticed


def test_a_module_whose_import_raises_raises_as_it_would(
    site: Path, noticed: list[ModuleType]
) -> None:
    write_module(site, "raise RuntimeError('libcudnn.so.9: cannot open')")
    with pytest.raises(RuntimeError, match=r"^libcudnn\.so\.9: cannot open$"):
        importlib.import_module(NAME)
    assert noticed == []
    assert NAME not in sys.modules


def test_a_module_that_is_imported_at_the_second_attempt_is_noticed(
    site: Path, noticed: list[ModuleType]
) -> None:
    write_module(site, "import os; VALUE = os.environ['NOT_YET_SET_BY_THIS_TEST']")
    with pytest.raises(KeyError):
        importlib.import_module(NAME)
    write_module(site, "VALUE = 'set now, and longer than before'")
    assert [importlib.import_module(NAME)] == noticed


def test_a_package_that_imports_its_own_parts_is_noticed_after_them(site: Path) -> None:
    write_package(site, f"from {NAME} import part\nDEEP = part.DEEP\n")
    noticed: list[int] = []
    when_imported(NAME, lambda module: noticed.append(module.DEEP))
    importlib.import_module(NAME)
    assert noticed == [2]


def test_two_who_wait_for_one_module_are_both_told_once(site: Path) -> None:
    write_module(site)
    before = list(sys.meta_path)
    noticed: list[str] = []
    for who in ("first", "second"):
        when_imported(NAME, lambda _, who=who: noticed.append(who))  # type: ignore[misc]
    importlib.import_module(NAME)
    assert sorted(noticed) == ["first", "second"]
    assert sys.meta_path == before


def test_the_module_can_still_be_looked_into(site: Path) -> None:
    write_package(site)
    when_imported(NAME, lambda _: None)
    module = importlib.import_module(NAME)
    file = site / NAME / "__init__.py"

    assert inspect.getsource(module) == SOURCE
    assert inspect.getsource(module.answer) == "def answer():\n    return 42\n"
    assert repr(module) == f"<module {NAME!r} from {str(file)!r}>"
    assert (module.__file__, module.__path__) == (str(file), [str(file.parent)])
    assert module.__spec__ is not None
    assert module.__spec__.has_location
    assert importlib.util.find_spec(NAME) is module.__spec__

    assert importlib.resources.files(NAME).joinpath("data.txt").read_text() == "beside"
    assert pkgutil.get_data(NAME, "data.txt") == b"beside"
    assert [found.name for found in pkgutil.iter_modules(module.__path__)] == ["part"]
    loader = module.__loader__
    assert loader.get_filename(NAME) == str(file)  # type: ignore[union-attr]
    assert loader.is_package(NAME) is True  # type: ignore[union-attr]


def test_the_module_can_be_loaded_anew(site: Path, noticed: list[ModuleType]) -> None:
    write_module(site)
    module = importlib.import_module(NAME)
    vars(module)["VALUE"] = 7
    assert importlib.reload(module) is module
    assert (module.VALUE, noticed) == (1, [module])
