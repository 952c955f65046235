"""The whole output of the checklist: on captures, and in a run of a CNN and an LLM."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from tests.harness.captures import capture, op, signpost
from tests.harness.golden import assert_golden

if TYPE_CHECKING:
    from tests.harness.project import Project

DRAM = {"INPUT_0_MEMORY": "DEV_0_DRAM_INTERLEAVED"}
ROWS = {**DRAM, "INPUT_0_LAYOUT": "ROW_MAJOR"}
SMALL = {"INPUT_0_Y_PAD[LOGICAL]": "32[1]"}
CNN = (
    op("TilizeDeviceOperation", 40_000, ROWS, cores=8),
    *(op("Conv2dDeviceOperation", 61_000) for _ in range(3)),
    op("BatchNormOperation", 20_000),
    op("HaloDeviceOperation", 12_000),
    op("Conv2dDeviceOperation", 90_000, cores=16),
)
LLM = (
    signpost("DECODE"),
    op("LayerNormDeviceOperation", 9_000, SMALL, cores=1),
    op("MatmulDeviceOperation", 120_000, {**DRAM, **SMALL}),
    op("ScaledDotProductAttentionDecode", 60_000, SMALL),
    op("MatmulDeviceOperation", 150_000, {**DRAM, **SMALL}),
    signpost("DECODE_END"),
)
MODELS = """
    import numpy as np

    def test_cnn(ttnn_perf):
        ttnn_perf.attach("cnn.csv")
        ttnn_perf.check_pcc(np.arange(4.0), np.arange(4.0))

    def test_llm(ttnn_perf):
        ttnn_perf.attach("llm.csv")
        ttnn_perf.facts(num_command_queues=2, use_trace=True, trace_region_size=1_000_000)
"""


@pytest.fixture
def captured(project: Project) -> Project:
    (project.path / "cnn.csv").write_text(capture(*CNN))
    (project.path / "llm.csv").write_text(capture(*LLM))
    return project


def test_check_of_an_llm(captured: Project) -> None:
    ran = captured.cli("check", "--csv", "llm.csv", "--start", "DECODE")
    assert (ran.code, ran.errors) == (0, "")
    assert_golden("check_llm_table", ran.text)


def test_run_of_both(captured: Project) -> None:
    captured.write(test_model=MODELS)
    recorded = captured.pytest("--ttnn-perf-update=new")
    assert recorded.code == 0
    slower = [op("Conv2dDeviceOperation", 99_000) for _ in range(3)]
    (captured.path / "cnn.csv").write_text(capture(CNN[0], *slower, *CNN[4:]))

    ran = captured.pytest("--ttnn-perf")

    assert ran.code == 1
    assert_golden("checklist_run", ran.text)


def test_errors_fail_a_check(captured: Project) -> None:
    replay = {"METAL TRACE ID": "1"}
    rows = [
        op("MatmulDeviceOperation", 100, {**replay, "METAL TRACE REPLAY SESSION ID": session})
        for session in ("1", "1", "2")
    ]
    (captured.path / "replays.csv").write_text(capture(*rows))

    found = captured.cli("check", "--csv", "replays.csv")
    waived = captured.cli("check", "--csv", "replays.csv", "--ignore", "TTP0")

    assert (found.code, waived.code) == (1, 0)
    assert found.text.startswith("TTP002 incomplete-trace-replay (error): ")
    flaw = "the replays of trace 1 on device 0 ran different ops: 1 of 2 complete"
    doubt = f"no number of the op table can be trusted: {flaw}"
    for ran in (found, waived):
        assert ran.text.splitlines()[-2] == doubt
        assert not re.search("would save|bottleneck|optimization progress|µs", ran.text)
    told = json.loads(captured.cli("check", "--csv", "replays.csv", "--format", "json").text)
    assert (told["doubt"], told["bottleneck"], told["regions"]) == (doubt, None, [])
    reasons = {rule["code"]: rule["reason"] for rule in told["rules"]}
    assert reasons["TTP202"] == doubt
    assert [rule["code"] for rule in told["rules"] if rule["outcome"] == "FOUND"] == ["TTP002"]
    shown = captured.cli("show", "replays.csv").text.splitlines()
    assert shown[1] == captured.cli("show", "replays.csv", "--ops").text.splitlines()[1]
    assert shown[1] == f"no number of it can be trusted: {flaw}"
    analysed = captured.cli("analyze", "bottlenecks", "replays.csv").text
    assert f"bottlenecks: {doubt}" in analysed
    assert "µs" not in analysed


def test_rules_of_other_plugins_alone_are_no_clean_checklist(captured: Project) -> None:
    (captured.path / "pyproject.toml").write_text('[tool.ttnn_perf]\nselect = ["ACM"]\n')

    ran = captured.cli("check", "--csv", "cnn.csv")

    assert (ran.code, ran.text) == (2, "")
    expected = "ttnn-perf: select: ACM: rules of other plugins are asked only in test runs"
    assert ran.errors.strip() == expected


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (
            ("--csv", "cnn.csv", "--select", "TTP2,ACM9"),  # nobody else's rules are known here
            "ttnn-perf: select: no rule begins with 'ACM9'; `ttnn-perf rules` lists them",
        ),
        (
            ("--csv", "cnn.csv", "--select", "ttp2", "--ignore", "ttp2"),
            "ttnn-perf: ignore: TTP2 leaves none of the rules that select names",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused(
    captured: Project, words: tuple[str, ...], complaint: str
) -> None:
    ran = captured.cli("check", *words)
    assert (ran.code, ran.text, ran.errors) == (2, "", complaint)
