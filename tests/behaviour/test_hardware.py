"""What a test is filed under that opens no device in its own process."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.behaviour.model import record_of
from tests.harness.captures import capture, op

if TYPE_CHECKING:
    from pathlib import Path

    from tests.harness.project import Project

TEST = "test_model.py::test_model"
#: A test that makes its capture itself, in a process that it starts on the devices.
PROFILING = """
    import os
    from pathlib import Path

    def profile():
        os.system("true -m tracy")
        folder = Path("generated/profiler/mlp/reports/now")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "ops_perf_results_now.csv").write_text(Path("capture.csv").read_text())

    def test_model(ttnn_perf):
        profile()
"""
RECORDING = """
    def test_model(ttnn_perf):
        ttnn_perf.hardware({})
        ttnn_perf.record("latency", [10.0, 10.1], unit="ms")
"""
WORMHOLE = {"DEVICE ARCH": "wormhole_b0"}
#: As captures before 2025-12.
UNTOLD = {"DEVICE ARCH": ""}


def profiling(project: Project, *, told: dict[str, str] | None = None) -> Project:
    """Write a test that profiles itself, and what its profiler will tell."""
    (project.path / "capture.csv").write_text(capture(op("Matmul", 50_000, told or {})))
    project.write(test_model=PROFILING)
    return project


def machine(path: Path, monkeypatch: pytest.MonkeyPatch, *cards: str) -> Path:
    """Make a machine whose driver names these cards."""
    root = path / "machine"
    for chip, card in enumerate(cards):
        folder = root / f"sys/class/tenstorrent/tenstorrent!{chip}"
        folder.mkdir(parents=True)
        (folder / "tt_card_type").write_text(f"{card}\n")
        (root / "dev/tenstorrent").mkdir(parents=True, exist_ok=True)
        (root / f"dev/tenstorrent/{chip}").touch()
    monkeypatch.setenv("TTNN_PERF_HOST", str(root))
    monkeypatch.setenv("TTNN_PERF_DEVICES", str(root / "dev/tenstorrent"))
    monkeypatch.delenv("TT_VISIBLE_DEVICES", raising=False)
    return root


def key_of(project: Project) -> str:
    """Return the only key that there are baselines of."""
    (folder,) = (p.name for p in (project.path / "baselines").iterdir() if p.is_dir())
    return folder


@pytest.mark.parametrize(
    ("cards", "told", "key"),
    [
        (["n150"], WORMHOLE, "wormhole_b0-n150-1x1"),
        (["p150a"] * 2, {"DEVICE ARCH": "blackhole"}, "blackhole-p150_x2-1x1"),
        (["n150"], UNTOLD, "wormhole_b0-n150-1x1"),
        (["n300"] * 2, WORMHOLE, "wormhole_b0-unknown-1x1"),  # cables decide
        (["p150a"], WORMHOLE, "wormhole_b0-unknown-1x1"),  # made elsewhere
        ([], WORMHOLE, "wormhole_b0-unknown-1x1"),
        ([], UNTOLD, "unknown-unknown-1x1"),
    ],
)
def test_a_test_that_profiles_itself_is_filed_under_the_board_of_the_machine(
    project: Project,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    cards: list[str],
    told: dict[str, str],
    key: str,
) -> None:
    machine(tmp_path, monkeypatch, *cards)
    ran = profiling(project, told=told).pytest("--ttnn-perf-update=new")
    assert ran.code == 0, ran.text
    assert key_of(project) == key
    said = f"board not known: 1 test filed under {key}" in ran.text.splitlines()
    assert said is ("unknown" in key)


@pytest.mark.parametrize(
    ("stated", "key"),
    [
        ("arch='wormhole_b0', board='n150', mesh='1x1'", "wormhole_b0-n150-1x1"),
        ("arch='blackhole', board='P150_X4', mesh=(1, 4)", "blackhole-p150_x4-1x4"),
        ("board='P150x4'", "blackhole-p150_x4"),
        ("board='lab_rig'", "unknown-lab_rig"),
    ],
)
def test_an_author_says_what_numbers_are_of(project: Project, stated: str, key: str) -> None:
    project.write(test_model=RECORDING.format(stated))
    ran = project.pytest("--ttnn-perf-update=new")
    assert ran.code == 0, ran.text
    assert key_of(project) == key
    assert project.pytest().code == 0, "only checked without the gate"
    assert ("board not known" in ran.text) is key.startswith("unknown")


@pytest.mark.parametrize(
    ("stated", "complaint"),
    [
        ("", "hardware() needs at least one of arch=, board= and mesh="),
        ("arch='wormhole'", "expected one of wormhole_b0, blackhole, quasar, found 'wormhole'"),
        ("board='n 150'", "expected a name such as 'n150' or 't3k', found 'n 150'"),
        ("arch='blackhole', board='n150'",
         "hardware(arch='blackhole', board='n150'): n150 is a board of wormhole_b0"),
        ("mesh='2x0'", "expected a shape such as '1x8' or (1, 8), found '2x0'"),
    ],
)  # fmt: skip
def test_nonsense_is_refused_by_name(project: Project, stated: str, complaint: str) -> None:
    project.write(test_model=RECORDING.format(stated))
    ran = project.pytest("--ttnn-perf-update=new")
    assert ran.code == 1
    assert complaint in ran.text
    assert not (project.path / "baselines").exists()


def test_a_statement_that_a_capture_contradicts_fails_the_test(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine(tmp_path, monkeypatch)
    profiling(project, told=WORMHOLE)
    project.write(test_model=PROFILING + "        ttnn_perf.hardware(arch='blackhole')\n")
    ran = project.pytest("--ttnn-perf-update=new")
    assert ran.code == 1
    expected = (
        "hardware(arch='blackhole') is stated by the test, and its capture is of "
        "wormhole_b0-unknown-1x1: correct it, or leave it out"
    )
    assert expected in ran.text
    assert record_of(project)["tests"][TEST]["problems"] == [expected]
