from __future__ import annotations

import pytest
from msgspec.structs import replace

from pytest_ttnn_perf.analysis.ops.regions import window
from pytest_ttnn_perf.core.assignment import signposts_of
from pytest_ttnn_perf.core.finding import RuleOutcome
from pytest_ttnn_perf.core.ops import Signpost
from tests.rules.answers import Ask, Evidence, Subject, found, limit, not_measured
from tests.rules.tables import Op, Tensor, on_host, op, table, tensor

ask = Ask("TTP403")
LIMIT = limit(0, "executions that differ")
X, Y = tensor(1, 1, 32, 64), tensor(1, 1, 64, 64)


def calls(*runs: list[Op], names: tuple[str, ...] = (), ours: str | None = None) -> Subject:
    """Return calls between signposts; ``ours`` is the test around which the plugin sets them."""
    posts: list[Signpost] = []
    rows: list[Op] = []
    for number, run in enumerate(runs):
        name = names[number] if names else "DECODE"
        begin, end = name, f"{name}_END"
        if ours is not None:
            begin, end = signposts_of(ours, run=1, iteration=number)
        posts.append(Signpost(begin, len(rows)))
        rows += run
        posts.append(Signpost(end, len(rows)))
    return Subject(ops=replace(table(*rows), signposts=tuple(posts)))


def test_calls_on_other_shapes_are_found() -> None:
    assert ask(calls([op("Add", [X])], [op("Add", [X])], [op("Add", [Y])])) == LIMIT.found(
        1,
        "different from the first: 1 of 2 repeated executions",
        [Evidence("DECODE on device 0, call 3: Add 1x1x64x64 instead of Add 1x1x32x64")],
    )


def test_calls_of_other_ops_are_found() -> None:
    subject = calls(
        [op("Add", [X])],
        [op("Add", [X]), op("Mul", [X])],
        ours="test_a",
    )
    assert ask(subject) == LIMIT.found(
        1,
        "different from the first: 1 of 1 repeated execution",
        [Evidence("test_a on device 0, call 2: 2 ops instead of 1 op")],
    )


def test_calls_of_several_tests_are_not_compared_with_each_other() -> None:
    one = calls([op("Add", [X])], [op("Add", [X])], ours="test_a").ops
    two = calls([op("Add", [Y])], [op("Add", [Y])], ours="test_b").ops
    assert one is not None
    assert two is not None
    shifted = tuple(post._replace(position=post.position + len(one)) for post in two.signposts)
    both = replace(table(*one, *two), signposts=(*one.signposts, *shifted))
    assert ask(ops=both) == LIMIT.clean(0)


@pytest.mark.parametrize(("last", "differing"), [(X, 0), (Y, 1)])
def test_windows_of_one_name_that_were_asked_for_are_compared(last: Tensor, differing: int) -> None:
    whole = calls([op("Add", [X]), op("Mul", [X])], [op("Add", [X]), op("Mul", [last])]).ops
    assert whole is not None
    answer = ask(ops=window(whole, "DECODE", None))
    assert (answer.outcome is RuleOutcome.FOUND, answer.value) == (bool(differing), differing)
    expected = "measured call on device 0, call 2: Mul 1x1x64x64 instead of Mul 1x1x32x64"
    assert [each.subject for each in answer.evidence] == [expected] * differing


def test_replays_on_other_shapes_are_found() -> None:
    rows = [op("Add", [X], replay=(3, 1)), op("Add", [Y], replay=(3, 2))]
    assert ask(ops=table(*rows)) == LIMIT.found(
        1,
        "different from the first: 1 of 1 repeated execution",
        [Evidence("trace 3 on device 0, replay 2: Add 1x1x64x64 instead of Add 1x1x32x64")],
    )


def test_executions_that_are_alike_are_clean() -> None:
    alike = LIMIT.clean(0)
    assert ask(calls([op("Add", [X])], [op("Add", [X])])) == alike
    rows = [op("Add", [X], replay=(3, n), device=d) for n in (1, 2) for d in (0, 1)]
    assert ask(ops=table(*rows)) == alike


def test_what_the_author_states_is_found() -> None:
    subject = Subject(ops=table(op("Add", [X])), facts={"dynamic_shapes": True})
    assert ask(subject) == found("the test states that its shapes change from call to call")


ONCE = (
    "nothing ran twice: needs two replays of a trace, or two windows of one name (NAME … NAME_END)"
)


@pytest.mark.parametrize(
    ("subject", "reason"),
    [
        (Subject(ops=table(op("Add", [X]))), ONCE),
        (calls([op("Add", [X])], [op("Add", [Y])], names=("PREFILL", "DECODE")), ONCE),
        (
            Subject(
                ops=table(
                    op("Add", [X], replay=(3, 1)),
                    op("Mul", [X], replay=(3, 1)),
                    op("Mul", [X], replay=(3, 2)),
                )
            ),
            "replays are not complete (TTP002): trace 3 on device 0, replay 2: Mul 1x1x32x64 "
            "instead of Add 1x1x32x64",
        ),
    ],
)
def test_what_cannot_be_compared_is_not_measured(subject: Subject, reason: str) -> None:
    assert ask(subject) == not_measured(reason)


def test_a_replay_that_ends_early_is_not_complete() -> None:
    rows = [
        op("Add", [X], replay=(3, 1)),
        op("Mul", [X], replay=(3, 1)),
        op("Add", [X], replay=(3, 2)),
    ]
    assert ask(ops=table(*rows)) == not_measured(
        "replays are not complete (TTP002): trace 3 on device 0, replay 2: 1 op instead of 2 ops"
    )


def test_fallbacks_of_calls_and_replays_inside_calls_are_left_out() -> None:
    plain = op("Add", [X])
    traced = [op("Mul", [X], replay=(3, 1)), op("Mul", [X], replay=(3, 2))]
    subject = calls([plain, on_host("(torch) cat"), traced[0]], [plain, traced[1]])
    assert ask(subject) == LIMIT.clean(0)


def test_executions_of_a_trace_that_are_not_told_apart_are_not_compared() -> None:
    rows = [op("Add", [X])._replace(trace=3), op("Add", [Y])._replace(trace=3)]
    assert ask(ops=table(*rows)) == not_measured(ONCE)
