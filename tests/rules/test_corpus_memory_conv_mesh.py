"""Rules about memory, matmuls, convolutions and devices on real captures.

What they say is held against sums over the plain rows of the same files, and against what is known
of the programs.
"""

from __future__ import annotations

import itertools
import re
from collections import defaultdict

import pytest

from pytest_ttnn_perf._base.text import percent
from pytest_ttnn_perf.analysis.captures.report_db_text import attribute_flag, attribute_int
from pytest_ttnn_perf.analysis.checklist.matmul_and_conv import flag, whole
from pytest_ttnn_perf.records.finding import RuleOutcome
from tests.rules.answers import Ask, clean
from tests.rules.captures import KERNEL, TABLES, device_rows, ops_of, report_of, without_chip

CONV = re.compile("Conv2dDeviceOperation|OptimizedConvNew")
MOVES = re.compile("Reshard|InterleavedToSharded|ShardedToInterleaved")
CLIP, FALCON = "blackhole_clip_encoder.csv", "falcon3_7b_tp4.csv"
OFT, OLD_OFT, DEEPSEEK = (
    "blackhole_oft_conv.csv",
    "oft_2025_09_v2.csv",
    "blackhole_deepseek_8dev.csv",
)


def time_of(chosen: list[dict[str, str]]) -> float:
    """Return their kernel time."""
    return sum(float(row[KERNEL]) for row in chosen)


@pytest.mark.parametrize("name", TABLES)
def test_attributes_read_as_the_capture_reads_them(name: str) -> None:
    table = ops_of(name).ops
    assert table is not None
    for text in table.attribute_texts:
        for key in ("act_block_h_ntiles", "per_core_out_matrix_height_ntile", "in0_block_w"):
            assert whole(text, key) == attribute_int(text, key)
        for key in ("enable_act_double_buffer", "enable_weights_double_buffer"):
            assert flag(text, key) == attribute_flag(text, key)


@pytest.mark.parametrize(
    ("name", "all_ops", "counted"), [(CLIP, 0.659, 0.617), (FALCON, 0.301, 0.165)]
)
def test_cores_in_use(name: str, all_ops: float, counted: float) -> None:
    def share(chosen: list[dict[str, str]]) -> float:
        used = sum(float(row["CORE COUNT"]) * float(row[KERNEL]) for row in chosen)
        return used / (float(chosen[0]["AVAILABLE WORKER CORE COUNT"]) * time_of(chosen))

    left = [
        row
        for row in device_rows(name)
        if float(row[KERNEL]) >= 5000
        and "DRAMSharded" not in row["ATTRIBUTES"]
        and not re.search("AllGather|ReduceScatter", row["OP CODE"])
    ]
    assert share(device_rows(name)) == pytest.approx(all_ops, abs=5e-4)
    assert share(left) == pytest.approx(counted, abs=5e-4)
    assert Ask("TTP305")(ops_of(name)).value == pytest.approx(share(left))


def test_cores_in_use_by_all_ops() -> None:
    # It has neither collectives nor DRAM-sharded matmuls, so that only short ops are left out.
    assert Ask("TTP305").with_limits(shortest_us=0)(ops_of(CLIP)).value == pytest.approx(
        0.659, abs=5e-4
    )


@pytest.mark.parametrize(("name", "count"), [(OFT, 117), (FALCON, 240), (CLIP, 0)])
def test_reshards(name: str, count: int) -> None:
    moves = [row for row in device_rows(name) if MOVES.search(row["OP CODE"])]
    share = time_of(moves) / time_of(device_rows(name))
    assert len(moves) == count
    answer = Ask("TTP302").with_limits(share=0.001)(ops_of(name))
    assert answer.value == pytest.approx(share)
    if count:
        told = f"{percent(share)} of the kernel time only moves tensors, in {count} ops"
        assert answer.reason == told


@pytest.mark.parametrize(("name", "count"), [(OFT, 90), (OLD_OFT, 54)])
def test_double_buffers(name: str, count: int) -> None:
    convolutions = [row["ATTRIBUTES"] for row in device_rows(name) if CONV.search(row["OP CODE"])]
    assert len(convolutions) == count
    for rule, buffered, key in (
        ("TTP603", "activations", "enable_act_double_buffer"),
        ("TTP604", "weights", "enable_weights_double_buffer"),
    ):
        assert sum(f"'{key}': 'true'" in text for text in convolutions) == 0
        answer = Ask(rule)(without_chip(name))
        reason = f"{buffered} not double-buffered in {count} of {count} convolutions"
        assert (answer.reason, answer.value, answer.limit) == (reason, 1.0, 0.0)


def test_efficiency_of_convolutions_without_an_architecture() -> None:
    modelled = [row for row in device_rows(OLD_OFT) if CONV.search(row["OP CODE"])]
    # Of the first region, which is a window of signposts.
    answer = Ask("TTP607")(ops_of(OLD_OFT))
    convolutions = modelled[:20]
    lost = sum(
        max(0.0, float(row[KERNEL]) - max(2 * float(row["PM IDEAL [ns]"]), 2_000))
        for row in convolutions
    )
    assert answer.reason == "20 convolutions at 15.8 % of the roofline"
    assert sum(each.value or 0.0 for each in answer.evidence) <= lost
    assert Ask("TTP607").saving(ops_of(OLD_OFT))[0] == pytest.approx(lost)


@pytest.mark.parametrize(("name", "changes", "largest"), [(OFT, 0, 5), (OLD_OFT, 4, 3)])
def test_shardings_and_blocks_of_convolutions(name: str, changes: int, largest: int) -> None:
    chosen = [row for row in device_rows(name) if CONV.search(row["OP CODE"])]
    memory = [re.sub(r"DEV_\d+_", "", row["INPUT_0_MEMORY"]) for row in chosen]
    assert sum(before != after for before, after in itertools.pairwise(memory)) == changes
    assert Ask("TTP601")(ops_of(name)).value == changes
    sizes = [
        re.findall(r"(?:act_block_h_ntiles|out_matrix_height_ntile)=(\d+)", row["ATTRIBUTES"])
        for row in chosen
    ]
    assert sum(block == most for block, most in sizes) == largest
    reason = Ask("TTP602")(ops_of(name)).reason
    assert reason is not None
    below = f"{len(chosen) - largest} of {len(chosen)} convolutions"
    assert reason.startswith(f"an act_block_h below the largest in {below}; ")


@pytest.mark.parametrize(
    ("name", "share", "excess"), [(DEEPSEEK, 0.153, 0.203), (FALCON, 0.202, 0.001)]
)
def test_devices(name: str, share: float, excess: float) -> None:
    exchanging = re.compile("AllGather|ReduceScatter")
    collectives = [row for row in device_rows(name) if exchanging.search(row["OP CODE"])]
    answer = Ask("TTP703")(ops_of(name))
    assert answer.value == pytest.approx(time_of(collectives) / time_of(device_rows(name)))
    assert answer.value == pytest.approx(share, abs=5e-4)
    times: dict[str, float] = defaultdict(float)
    for row in device_rows(name):
        if not exchanging.search(row["OP CODE"]):
            times[row["DEVICE ID"]] += float(row[KERNEL])
    longest = max(times.values()) * len(times) / sum(times.values()) - 1
    assert Ask("TTP704")(ops_of(name)).value == pytest.approx(longest)
    assert longest == pytest.approx(excess, abs=5e-4)


def test_matmuls_without_a_program_config() -> None:
    matmuls = [row for row in device_rows(CLIP) if "Matmul" in row["OP CODE"]]
    without = [row for row in matmuls if "'program_config': 'std::nullopt'" in row["ATTRIBUTES"]]
    assert (len(without), len(matmuls)) == (48, 192)
    reason = Ask("TTP313")(ops_of(CLIP)).reason
    assert reason is not None
    assert reason.startswith("without a program config, and slow: 48 of 192 matmuls, 967.6 µs")


@pytest.mark.parametrize(
    ("name", "waits"),
    [
        ("gemma_31b_fused_final.csv", False),  # bfloat16 at 79 to 81 % of the bandwidth
        ("north_mini_dense_decode_b1_trace.csv", False),  # DRAM-sharded
        ("gemma_sliding_decode_replicated_v1.csv", True),
        ("gemma_sliding_decode_final.csv", False),
    ],
)
def test_matmuls_that_read_weights_slowly(name: str, waits: bool) -> None:
    assert (Ask("TTP311")(ops_of(name)).outcome is RuleOutcome.FOUND) is waits


def test_a_prompt_is_told_from_a_decode_step() -> None:
    prompts = {
        name for name in TABLES if Ask("TTP303")(ops_of(name)).outcome is RuleOutcome.NOT_APPLICABLE
    }
    if not TABLES:
        pytest.skip("the corpus has no captures: set TTNN_PERF_CORPUS to its folder")
    assert prompts == {
        DEEPSEEK,
        "gemma_31b_sliding_prefill_multichip.csv",
        "north_mini_dense_prefill_b1.csv",
        "qwen3_32b_fused_prefill.csv",
    }


def test_a_small_vision_model() -> None:
    # As the README of the corpus lists it, op by op.
    model = report_of("cnn_small/db.sqlite")
    assert [evidence.subject for evidence in Ask("TTP302")(model).evidence] == [
        "ttnn.to_memory_config (operation 7) 1x1x1024x32, HEIGHT → BLOCK",
        "ttnn.conv2d (operation 11) 1x1x1024x64, BLOCK → HEIGHT",
    ]
    assert [evidence.subject for evidence in Ask("TTP602")(model).evidence] == [
        "ttnn.conv2d (operation 1) 1x1x4096x16, act_block_h_override 32 → 64"
    ]
    # Operation 12 ran as a matmul.
    off = {re.findall(r"operation (\d+)", e.subject)[0] for e in Ask("TTP603")(model).evidence}
    assert off == {"3", "9", "18"}
    assert Ask("TTP601")(model).value == 2


def test_room_in_l1() -> None:
    expected = clean(1 - 172_032 / 1_395_424, limit=0.1, unit="of L1")
    assert Ask("TTP304")(report_of("linear_legacy.sqlite")) == expected
