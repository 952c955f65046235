"""Convolutions in a row that are sharded differently."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING

from pytest_ttnn_perf._base.text import counted
from pytest_ttnn_perf.analysis.checklist.matmul_and_conv import (
    NO_CONVOLUTIONS,
    Convolution,
    convolutions,
)
from pytest_ttnn_perf.analysis.checklist.rule import Answer, Limit, rule
from pytest_ttnn_perf.records.finding import Evidence, Input, Severity, Subject

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


@rule("TTP601", "conv-sharding-changes", Severity.WARNING, Input.OPS, Input.REPORT)
def conv_sharding_changes(
    subject: Subject,
    *,
    changes: Limit = Limit(1, "changes", "from many pixels to many channels, once"),
) -> Answer:
    """Convolutions in a row are sharded differently.

    ## What it finds
    How often a convolution is sharded otherwise than the one before it on the same device.

    ## Why it matters
    Between two shardings the whole activation is sent from core to core.

    ## What to do
    Keep one `shard_layout` for a run of convolutions. Where the shape asks for another, change it
    once, at the place where the activation is smallest.

    ## When it is no problem
    Most networks need one change, from many pixels to many channels. Branches that run in turn look
    like changes, as convolutions are compared in the order in which they run.

    ## Where it looks
    The memory of the first input of convolutions in the op table. Without a table, the output and
    the `shard_layout` of convolutions in a report database.
    """
    listed = convolutions(subject)
    if not listed:
        return Answer.not_applicable(NO_CONVOLUTIONS)
    sharded = [conv for conv in listed if conv.sharding is not None]
    if not sharded:
        return Answer.not_measured("the capture does not tell how convolutions are sharded")
    changed = _changes(sharded)
    count = counted(len(sharded), "convolution")
    return changes.at_most(
        float(len(changed)),
        f"sharded otherwise than the one before: {len(changed)} of {count}",
        map(Evidence, changed),
    )


def _changes(listed: Iterable[Convolution]) -> list[str]:
    """Return the changes on the device that has most of them."""
    by_device: dict[int, list[Convolution]] = defaultdict(list)
    for conv in listed:
        by_device[conv.device].append(conv)
    return max((list(_along(row)) for row in by_device.values()), key=len)


def _along(row: Iterable[Convolution]) -> Iterator[str]:
    for before, after in pairwise(row):
        if before.sharding != after.sharding:
            yield f"{after.name}, {before.sharding} → {after.sharding}"
