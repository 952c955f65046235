"""Kernels with planted defects, and tutorials, in tt-lang's own simulator: what is found."""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from tests.ttlang.page import write_page

if TYPE_CHECKING:
    from tests.harness.project import Project

#: Run where the simulator stands in for ttnn: it must not in the process of these tests.
TRACED: Final = """
import sys

import conftest
import torch
import ttnn
from kernel import add

from pytest_ttnn_perf.analysis.readers.ttlang_sim import sim_trace

device = ttnn.open_device(device_id=0)
torch.manual_seed(0)
x, y = torch.rand(1024, 1024), torch.rand(1024, 1024)
a, b, out = (
    ttnn.from_torch(t, dtype=ttnn.bfloat16, layout=ttnn.TILE_LAYOUT, device=device)
    for t in (x, y, torch.zeros(1024, 1024))
)
with sim_trace("trace.jsonl"):
    for _ in range(int(sys.argv[1])):
        add(a, b, out)
print("right" if torch.allclose(ttnn.to_torch(out).float(), x + y, atol=0.02) else "wrong")
"""
GOOD: Final = (("grid=(2, 2)", "grid=(4, 4)"), ("BLOCK = 2", "BLOCK = 4"))
ONE_TILE: Final = ("BLOCK = 4", "BLOCK = 1")
IN_TURN: Final = (
    "b_copy = ttl.copy(b[i, j], b_block)\n                a_copy.wait()",
    "a_copy.wait()\n                b_copy = ttl.copy(b[i, j], b_block)",
)
IDLE: Final = (
    ("// BLOCK // rows", "// BLOCK"),
    ("range(row * down, (row + 1) * down)", "range(down if row == 0 else 0)"),
    ("for _ in range(down * across)", "for _ in own_blocks()"),
)
COLUMN: Final = ("ttl.copy(a[i, j], a_block)", "ttl.copy(a[i, slice(0, BLOCK)], a_block)")

DEFECTS: Final[dict[str, tuple[tuple[tuple[str, str], ...], set[str]]]] = {
    "good": ((), set()),
    "one node": ((("grid=(4, 4)", "grid=(1, 1)"),), {"TTP801"}),
    "blocks of one tile": ((ONE_TILE,), {"TTP810"}),
    "copies in turn": ((IN_TURN,), {"TTP805"}),
    "one tile, in turn": ((ONE_TILE, IN_TURN), {"TTP805", "TTP810"}),
    "buffers of one block": ((("block_count=2", "block_count=1"),), {"TTP808"}),
    "rows on 4 of 16 nodes": (IDLE, {"TTP807"}),
    "the same column again": ((COLUMN,), {"TTP809"}),
}


def found_in(project: Project, trace: str, *options: str) -> dict[str, str]:
    """Return what the checklist finds in a trace, by the rule."""
    import json

    ran = project.cli("check", trace, *options, "--format", "json")
    assert ran.code == 0, ran.errors
    rules = json.loads(ran.text)["rules"]
    return {one["code"]: one["reason"] for one in rules if one["outcome"] == "FOUND"}


@pytest.mark.parametrize("defect", DEFECTS)
def test_each_defect_has_its_finding_and_no_other(project: Project, defect: str) -> None:
    changes, expected = DEFECTS[defect]
    write_page(project)
    kernel = project.path / "kernel.py"
    source = kernel.read_text()
    for before, after in (*GOOD, *changes):
        assert before in source
        source = source.replace(before, after)
    kernel.write_text(source)
    (project.path / "traced.py").write_text(TRACED)

    ran = project.run(sys.executable, "traced.py", "1")

    assert ran.code == 0, ran.errors
    assert ran.text.strip() == ("wrong" if defect == "the same column again" else "right")
    found = found_in(project, "trace.jsonl")
    assert set(found) == expected, found
    if "TTP801" in expected:
        target = found_in(project, "trace.jsonl", "--fact", "target=n150")
        assert "1.6 % of the cores" in target["TTP801"]


#: Tiles per copy, L1 that is seen of a node, and what is found: they run on one node, or are a
#: matmul, or a first step that is to be improved.
TUTORIALS: Final = {
    "elementwise/step_1_single_node_single_tile_block": (1.0, 14, {"TTP801", "TTP810"}),
    "elementwise/step_2_single_node_multitile_block": (16.0, 224, {"TTP801"}),
    "elementwise/step_4_multinode_grid_full": (16.0, 224, set()),
    "broadcast/single_node_broadcast_multitile_blocks": (385 / 49, 66, {"TTP801"}),
    "matmul/step_4_multinode_grid_full": (16.0, 288, {"TTP809"}),
}


@pytest.mark.parametrize("name", TUTORIALS)
def test_tutorials_have_no_false_findings(project: Project, name: str) -> None:
    tiles, l1_kib, expected = TUTORIALS[name]
    spec = find_spec("ttl")
    assert spec is not None
    assert spec.origin is not None
    source = (Path(spec.origin).parent / "tutorials" / f"{name}.py").read_text()
    smaller = source.replace("2048", "512").replace("8192", "512")
    (project.path / "kernel.py").write_text(smaller)
    simulator = shutil.which("tt-lang-sim", path=str(Path(sys.executable).parent))
    assert simulator is not None

    done = subprocess.run(
        [simulator, "kernel.py", "--grid", "2,2", "--trace", "trace.jsonl"],
        cwd=project.path, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    from pytest_ttnn_perf.analysis.readers.ttlang_sim import read_sim_trace

    (operation,) = read_sim_trace(project.path / "trace.jsonl").operations
    assert operation.copied_tiles / operation.copies == tiles
    held = sum(buffer.tiles * buffer.fullest * 2 for buffer in operation.buffers)
    assert held == l1_kib
    assert set(found_in(project, "trace.jsonl")) == expected


def test_the_same_kernel_twice_is_no_pair_and_tensors_are_known_again(project: Project) -> None:
    write_page(project)
    (project.path / "traced.py").write_text(TRACED)
    assert project.run(sys.executable, "traced.py", "2").code == 0
    assert "TTP811" not in found_in(project, "trace.jsonl")
    shown = project.cli("show", "trace.jsonl").text
    assert shown.count("operation add") == 2
    assert "a_blocks: 2x2 tiles, block_count 2" in shown
