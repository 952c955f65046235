"""ttnn as it is found: imported later, its errors, and what it tells of devices."""

from __future__ import annotations

import enum
import importlib
import importlib.resources
import importlib.util
import inspect
import pkgutil
import sys
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from pytest_ttnn_perf.core.hardware import Hardware
from pytest_ttnn_perf.machine.ttnn import cause_of, when_imported
from pytest_ttnn_perf.measure.profilers import Runtime

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


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

    vars(module)["VALUE"] = 7
    assert importlib.reload(module) is module
    assert (module.VALUE, len(noticed)) == (1, 1)


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


NO_CHIPS = """\
RuntimeError: TT_FATAL @ /project/tt_metal/llrt/tt_cluster.cpp:129: num_chips > 0
info:
No chips detected in the cluster
backtrace:
 --- /lib/python3.12/site-packages/ttnn/build/lib/_ttnncpp.so(+0xb233e8) [0x7fd467d233e8]
 --- tt::Cluster::get_cluster_type_from_cluster_desc(tt::llrt::RunTimeOptions const&)
"""


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (NO_CHIPS, "No chips detected in the cluster"),
        (
            "TT_THROW @ build.cpp:291: tt::exception\ninfo:\nsfpi not found at\n  /opt/sfpi\n"
            "backtrace:\n --- f()",
            "sfpi not found at /opt/sfpi",
        ),
        ("TT_FATAL @ a.cpp:1: x\ninfo:\nwithout a backtrace", "without a backtrace"),
        ("TT_FATAL @ a.cpp:1: x > 0\ninfo:\nbacktrace:\n --- f()", "TT_FATAL @ a.cpp:1: x > 0"),
        ("log\nlog\n" + NO_CHIPS + "log\n", "No chips detected in the cluster"),
        (
            "RuntimeError: Cluster descriptor file does not exist at path: /no.yaml\n"
            "Location: /project/umd/cluster_descriptor.cpp:125\n 1. f\n 2. g\n",
            "RuntimeError: Cluster descriptor file does not exist at path: /no.yaml",
        ),
        ("ValueError: two\nlines", "ValueError: two\nlines"),
        ("info:\nnot of tt-metal\nbacktrace:", "info:\nnot of tt-metal\nbacktrace:"),
        ("", ""),
    ],
)
def test_the_cause_of_an_error(text: str, cause: str) -> None:
    assert cause_of(text) == cause


Arch = enum.Enum("Arch", "WORMHOLE_B0 BLACKHOLE")
ClusterType = enum.Enum("ClusterType", "N150 P150_X4")


class Shape:
    """A shape that can be gone through."""

    def __init__(self, *sizes: int) -> None:
        self._sizes = sizes

    def __iter__(self) -> Iterator[int]:
        return iter(self._sizes)


def runtime(**attributes: Any) -> Runtime:
    ttnn = ModuleType("ttnn")
    vars(ttnn).update(attributes)
    return Runtime(ttnn)


def answering(answer: object) -> Callable[..., Any]:
    """Return a function that answers so, or raises that."""

    def asked(*_: object) -> object:
        if isinstance(answer, Exception):
            raise answer
        return answer

    return asked


def device(**methods: object) -> Any:
    return SimpleNamespace(**{name: answering(answer) for name, answer in methods.items()})


def test_the_hardware_of_a_device() -> None:
    mesh = device(arch=Arch.BLACKHOLE)
    mesh.shape = Shape(1, 4)
    found = runtime(cluster=device(get_cluster_type=ClusterType.P150_X4)).hardware(mesh)
    assert found == Hardware("blackhole", "p150_x4", "1x4")
    assert found.key == "blackhole-p150_x4-1x4"
    assert runtime().hardware(device(arch="wormhole_b0")).key == "wormhole_b0-unknown-1x1"
