"""Before any test runs: what must be writable, what must not be set, and which profiler it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pytest_ttnn_perf.core.errors import UsageError, WriteError
from pytest_ttnn_perf.core.settings import ProfilerKind, Settings
from pytest_ttnn_perf.machine.inspection import Build
from pytest_ttnn_perf.plugin import preflight as readiness
from pytest_ttnn_perf.plugin.preflight import (
    ProfilerChoice,
    choose_profiler,
    take_share,
)

VISIBLE = "TT_VISIBLE_DEVICES"
INSTALLED = Build("0.81.1", "/site/ttnn")
WITH_TRACY = Build("0.81.1", "/site/ttnn", tracy=True, arch="wormhole_b0")


SELF_CHECKS = {"TT_METAL_LLK_ASSERTS": "0"}


def settings(folder: Path, **given: Any) -> Settings:
    return Settings(**{
        "baselines": folder / "baselines", "artifacts": folder / ".ttnn_perf", **given,
    })  # fmt: skip


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[object, ...]]:
    """Let ttnn be installed, with Tracy; return what it is asked with."""
    calls: list[tuple[object, ...]] = []

    def preflight(*arguments: object, **options: object) -> Build:
        calls.append((*arguments[1:], options))
        return WITH_TRACY

    monkeypatch.setattr(readiness, "ttnn_folder", lambda: Path("/site/ttnn"))
    monkeypatch.setattr("pytest_ttnn_perf.machine.inspection.installed_ttnn", lambda: INSTALLED)
    monkeypatch.setattr("pytest_ttnn_perf.machine.inspection.preflight", preflight)
    return calls


def test_the_installed_ttnn_is_asked_once_and_decides(
    tmp_path: Path, asked: list[tuple[object, ...]]
) -> None:
    environment = {"TTNN_PERF_DEVICES": str(tmp_path)}
    found = choose_profiler(settings(tmp_path), environment, isolated=True)
    assert found == ProfilerChoice(ProfilerKind.DEVICE, "ttnn 0.81.1 is Tracy-enabled")
    assert asked == [(environment, {"timeout_s": 300.0})]
    elsewhere = {"TTNN_PERF_DEVICES": str(tmp_path / "none")}
    assert (
        choose_profiler(settings(tmp_path), elsewhere, isolated=True).why == "no device was found"
    )
    assert len(asked) == 1, "there is nothing that it could profile"


@pytest.mark.parametrize("profiler", [ProfilerKind.OFF, ProfilerKind.AUTO], ids=["off", "auto"])
def test_nothing_is_asked_where_nothing_depends_on_it(
    tmp_path: Path,
    asked: list[tuple[object, ...]],
    profiler: ProfilerKind,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if profiler is ProfilerKind.AUTO:
        monkeypatch.setattr(readiness, "ttnn_folder", lambda: None)
    why = "as asked" if profiler is ProfilerKind.OFF else "no ttnn is installed"
    found = choose_profiler(settings(tmp_path, profiler=profiler), {}, isolated=True)
    assert found == ProfilerChoice(ProfilerKind.OFF, why)
    assert asked == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("asked")
def test_tt_lang_s_profilers_may_be_set_where_they_are_asked_for(tmp_path: Path) -> None:
    ttlang = settings(tmp_path, profiler=ProfilerKind.TTLANG)
    devices = {"TTNN_PERF_DEVICES": str(tmp_path)}
    environment = {"TTLANG_PERF_DUMP": "1", **SELF_CHECKS, **devices}
    assert choose_profiler(ttlang, environment, isolated=True).kind is ProfilerKind.TTLANG

    environment["TTLANG_AUTO_PROFILE"] = "1"
    with pytest.raises(UsageError) as raised:
        choose_profiler(ttlang, environment, isolated=True)
    assert str(raised.value) == (
        "TTLANG_AUTO_PROFILE + TTLANG_PERF_DUMP cannot be used together: each profiles the same "
        "kernels in its own way: unset TTLANG_AUTO_PROFILE or TTLANG_PERF_DUMP"
    )


@pytest.fixture
def chips(tmp_path: Path) -> dict[str, str]:
    """Return the environment of a machine with two chips."""
    for number in ("0", "3"):
        (tmp_path / "chips" / number).mkdir(parents=True)
    return {"TTNN_PERF_DEVICES": str(tmp_path / "chips")}


def test_a_process_has_a_chip_of_its_own_and_sees_no_other(
    tmp_path: Path, chips: dict[str, str]
) -> None:
    first, second = dict(chips), {**chips, "PYTEST_XDIST_WORKER_COUNT": "2"}
    leases = [take_share(environment, tmp_path)[1] for environment in (first, second)]
    assert [taken and taken.chips for taken in leases] == [(0,), (3,)]
    assert (first[VISIBLE], second[VISIBLE]) == ("0", "3")
    assert take_share({"TTNN_PERF_DEVICES": "/does/not/exist"}, tmp_path)[1] is None


def test_processes_side_by_side_have_a_folder_each(tmp_path: Path) -> None:
    given = {
        "TT_METAL_LOGS_PATH": str(tmp_path / "logs"),
        "TT_METAL_PROFILER_DIR": str(tmp_path / "profiler"),
    }
    first, second = ({**given, "PYTEST_XDIST_WORKER": name} for name in ("gw0", "gw1"))
    folders = [take_share(environment, tmp_path)[0] for environment in (first, second)]
    assert folders == [tmp_path / "gw0", tmp_path / "gw1"]
    assert all(folder.is_dir() for folder in folders)
    assert second["TT_METAL_LOGS_PATH"] == str(tmp_path / "gw1" / "logs")
    assert second["TT_METAL_PROFILER_DIR"] == str(tmp_path / "gw1" / "profiler")

    users = {"TT_METAL_LOGS_PATH": "/var/log/tt", "PYTEST_XDIST_WORKER": "gw2"}
    take_share(users, tmp_path)
    assert users == {"TT_METAL_LOGS_PATH": "/var/log/tt", "PYTEST_XDIST_WORKER": "gw2"}
    (tmp_path / "gw3").write_text("in the way")
    with pytest.raises(WriteError, match="gw3: cannot write: File exists"):
        take_share({"PYTEST_XDIST_WORKER": "gw3"}, tmp_path)
