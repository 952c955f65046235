"""Devices that did not run the same ops."""

from __future__ import annotations

from msgspec.structs import replace

from pytest_ttnn_perf.core.ops import Signpost
from tests.rules.answers import Ask, Evidence, limit, not_applicable
from tests.rules.tables import Op, on_host, op, table

ask = Ask("TTP011")
LIMIT = limit(0, "devices")


def ran(device: int, *codes: str, replay: tuple[int, int] | None = None) -> list[Op]:
    return [op(code, ns=100 + at, device=device, replay=replay) for at, code in enumerate(codes)]


def test_a_device_ran_fewer_ops_than_the_others() -> None:
    rows = [*ran(0, "Matmul", "Add"), *ran(1, "Matmul"), *ran(2, "Matmul", "Add")]
    assert ask(ops=table(*rows)) == LIMIT.found(
        1,
        "1 of 3 devices ran other ops than the rest",
        [Evidence("whole capture: device 1, 1 op; most: 2 ops")],
    )


def test_a_device_ran_another_op() -> None:
    rows = [*ran(0, "Matmul", "Add"), *ran(1, "Matmul", "Add"), *ran(5, "Matmul", "MulOperation")]
    assert ask(ops=table(*rows)).evidence == (
        Evidence("whole capture: device 5, Mul at op 2; most: Add at op 2"),
    )


def test_what_one_device_runs_alone_is_no_difference_outside_windows_and_replays() -> None:
    """A reference on one device, before the model on all of them."""
    alone, both = ran(0, "Matmul", "Softmax"), [*ran(0, "Matmul"), *ran(1, "Matmul")]
    posts = (Signpost("DECODE", 2), Signpost("DECODE_END", 4))
    assert ask(ops=replace(table(*alone, *both), signposts=posts)) == LIMIT.clean(0)
    replayed = [*ran(0, "Matmul", replay=(7, 1)), *ran(1, "Matmul", replay=(7, 1))]
    assert ask(ops=table(*alone, *replayed, on_host("(torch) cat"))) == LIMIT.clean(0)


def test_a_window_beside_a_trace_counts_by_itself() -> None:
    replayed = [*ran(0, "Matmul", replay=(7, 1)), *ran(1, "Matmul", replay=(7, 1))]
    prefill = [*ran(0, "Matmul"), *ran(1, "Slice")]
    posts = (Signpost("PREFILL", 2), Signpost("PREFILL_END", 4))
    answer = ask(ops=replace(table(*replayed, *prefill), signposts=posts))
    assert answer.evidence == (Evidence("prefill: device 1, Slice at op 1; most: Matmul at op 1"),)


def test_one_device() -> None:
    assert ask(ops=table(op("Matmul"))) == not_applicable("one device")
