"""Convolutions in a row that are sharded differently."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar

from pytest_ttnn_perf._base.text import counted
from pytest_ttnn_perf.analysis.checklist.matmul_and_conv import NO_CONVOLUTIONS, convolutions
from pytest_ttnn_perf.analysis.checklist.rule import (
    Rule,
    clean,
    found,
    limit,
    not_applicable,
    not_measured,
)
from pytest_ttnn_perf.records.finding import Evidence, Input, Severity

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pytest_ttnn_perf.analysis.checklist.matmul_and_conv import Convolution
    from pytest_ttnn_perf.analysis.checklist.rule import Answer
    from pytest_ttnn_perf.records.finding import Subject


@dataclass(frozen=True, slots=True)
class ConvShardingChanges(Rule):
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

    code: ClassVar[str] = "TTP601"
    name: ClassVar[str] = "conv-sharding-changes"
    severity: ClassVar[Severity] = Severity.WARNING
    needs: ClassVar[tuple[Input, ...]] = (Input.OPS, Input.REPORT)

    changes: float = limit(1, unit="changes", source="from many pixels to many channels, once")

    def check(self, subject: Subject) -> Answer:
        """Compare the number of changes with the limit."""
        listed = convolutions(subject)
        if not listed:
            return not_applicable(NO_CONVOLUTIONS)
        told = [each for each in listed if each.sharding is not None]
        if not told:
            return not_measured("the capture does not tell how convolutions are sharded")
        changes = _changes(told)
        count, unit = float(len(changes)), "changes"
        if count <= self.changes:
            return clean(count, limit=self.changes, unit=unit)
        return found(
            "sharded otherwise than the one before: "
            f"{len(changes)} of {counted(len(told), 'convolution')}",
            value=count,
            limit=self.changes,
            unit=unit,
            evidence=[Evidence(change) for change in changes],
        )


def _changes(listed: Iterable[Convolution]) -> list[str]:
    """Return the changes on the device that has most of them."""
    by_device: dict[int, list[Convolution]] = defaultdict(list)
    for each in listed:
        by_device[each.device].append(each)
    return max((list(_along(row)) for row in by_device.values()), key=len)


def _along(row: Iterable[Convolution]) -> Iterator[str]:
    for before, after in pairwise(row):
        if before.sharding != after.sharding:
            yield f"{after.name}, {before.sharding} → {after.sharding}"
