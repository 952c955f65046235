"""The whole output of ``show --ops``: one row per op, layers once, in the width of a terminal."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING

import pytest

from tests.harness.captures import capture, op, signpost
from tests.harness.corpus import corpus
from tests.harness.golden import assert_golden

if TYPE_CHECKING:
    from tests.harness.project import Project

MUL = {
    "ATTRIBUTES": "{'binary_op_type': 'BinaryOpType::MUL'}",
    "INPUT_0_MEMORY": "DEV_0_DRAM_INTERLEAVED",
}
LAYER = (
    ("LayerNormDeviceOperation", 12_000, None, 8),
    *(("MatmulDeviceOperation", 61_000 + 500 * each, None, 64) for each in range(3)),
    ("SdpaDecodeDeviceOperation", 22_000, None, 64),
    ("MatmulDeviceOperation", 40_000, None, 64),
    ("BinaryNgDeviceOperation", 9_000, MUL, 64),
    ("ReshardDeviceOperation", 2_000, None, 64),
)
CAPTURE = (
    op("MatmulDeviceOperation", 900_000),
    signpost("PERF_DECODE"),
    op("EmbeddingsDeviceOperation", 5_000),
    *(
        op(code, ns + 100 * layer, cells, cores=cores)
        for layer in range(4)
        for code, ns, cells, cores in LAYER
    ),
    op("ArgMaxDeviceOperation", 120_000, cores=1),
    signpost("PERF_DECODE_END"),
    signpost("HEAD_START"),
    op("MatmulDeviceOperation", 120_000),
    signpost("HEAD_STOP"),
)


@pytest.fixture
def captured(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setenv("COLUMNS", "80")
    (project.path / "model.csv").write_text(capture(*CAPTURE))
    return project


@pytest.mark.parametrize("shape", ["table", "csv"])
def test_every_op_in_every_shape(captured: Project, shape: str) -> None:
    ran = captured.cli("show", "model.csv", "--ops", "--format", shape)
    assert (ran.code, ran.errors) == (0, "")
    assert_golden(f"show_ops_{shape}", ran.text)


def test_what_the_checklist_names_is_found_by_its_number(project: Project) -> None:
    file = str(corpus("ops_perf/gemma_sliding_decode_final.csv"))
    text = project.cli("show", file, "--ops", "--format", "csv").text
    names = {int(row["number"]): row["name"] for row in csv.DictReader(io.StringIO(text))}
    rules = json.loads(project.cli("check", "--csv", file, "--format", "json").text)["rules"]
    named = [
        (evidence["subject"], number)
        for rule in rules
        for evidence in rule["evidence"]
        for number in evidence.get("ops", ())
    ]
    assert named
    assert [each for each in named if names[each[1]] not in each[0]] == []
    printed = project.cli("check", "--csv", file).text
    subject, number = named[0]
    assert any(f"#{number}" in line for line in printed.splitlines() if subject in line)
