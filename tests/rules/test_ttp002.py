from __future__ import annotations

from tests.rules.answers import Ask, Evidence, limit, not_applicable, not_measured
from tests.rules.tables import TraceReplays, op, table

ask = Ask("TTP002")
LIMIT = limit(0, "traces")
ROW = op("MatmulDeviceOperation", replay=(7, 1))


def test_replays_that_differ() -> None:
    traces = (
        TraceReplays(device=0, trace=7, replays=3, complete=True),
        TraceReplays(device=1, trace=7, replays=15, complete=False),
    )
    assert ask(ops=table(ROW, traces=traces)) == LIMIT.found(
        1,
        "different ops in the replays of 1 of 2 traces",
        [Evidence("trace 7 on device 1", 15, "replays")],
    )


def test_replays_that_are_the_same() -> None:
    traces = (TraceReplays(device=0, trace=7, replays=2, complete=True),)
    assert ask(ops=table(ROW, traces=traces)) == LIMIT.clean(0)


def test_a_single_replay_proves_nothing() -> None:
    traces = (TraceReplays(device=0, trace=7, replays=1, complete=True),)
    answer = ask(ops=table(ROW, traces=traces))
    assert answer == not_measured("every trace was replayed once: nothing to compare with")


def test_a_table_that_was_cut_to_a_window() -> None:
    answer = ask(ops=table(ROW))
    assert answer == not_measured("the op table does not tell the replays of a trace apart")


def test_without_traces() -> None:
    answer = ask(ops=table(op("MatmulDeviceOperation")))
    assert answer == not_applicable("no trace was replayed")
