"""What holds for any history in which one commit is slow."""

from __future__ import annotations

from math import ceil, log2

from hypothesis import given
from hypothesis import strategies as st

from pytest_ttnn_perf.experiments.bisect import Search, What
from tests.properties.strategies import SOME


@SOME
@given(st.integers(1, 200), st.data())
def test_only_what_cannot_be_measured_is_left_beside_the_answer(
    count: int, data: st.DataObject
) -> None:
    """And each commit is asked for once; without broken ones, as few as halving takes."""
    planted = data.draw(st.integers(0, count - 1))
    broken = data.draw(st.sets(st.integers(0, max(count - 2, 0)), max_size=20)) - {planted}
    commits = [str(number) for number in range(count)]
    search, asked = Search(commits), list[str]()
    while (commit := search.next()) is not None:
        asked.append(commit)
        what = What.SLOW if int(commit) >= planted else What.FAST
        search.results[commit] = What.SKIPPED if int(commit) in broken else what
    suspects = {int(commit) for commit in search.suspects}
    assert planted in suspects
    assert suspects - {planted} <= broken
    assert len(asked) == len(set(asked))
    assert commits[-1] not in asked
    if not broken:
        assert len(asked) <= ceil(log2(count))
