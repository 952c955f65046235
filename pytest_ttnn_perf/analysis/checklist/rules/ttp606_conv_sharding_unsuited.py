"""Convolutions whose shape asks for another sharding."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, ClassVar

from pytest_ttnn_perf._base.text import counted
from pytest_ttnn_perf.analysis.checklist.matmul_and_conv import (
    NO_CONVOLUTIONS,
    convolutions,
    heaviest,
    whole_ns,
)
from pytest_ttnn_perf.analysis.checklist.rule import (
    Rule,
    clean,
    found,
    limit,
    not_applicable,
    not_measured,
)
from pytest_ttnn_perf.records.finding import Input, Severity

if TYPE_CHECKING:
    from pytest_ttnn_perf.analysis.checklist.matmul_and_conv import Convolution
    from pytest_ttnn_perf.analysis.checklist.rule import Answer
    from pytest_ttnn_perf.records.finding import Subject


@dataclass(frozen=True, slots=True)
class ConvShardingUnsuited(Rule):
    """Convolutions are sharded otherwise than their shape suggests.

    ## What it finds
    The share of convolutions whose sharding does not go with the shape of their output: by height
    if there are many more pixels than channels, by width if there are many more channels than
    pixels, by block between. Pixels are those of all images of the batch.

    ## Why it matters
    A shard should have work for its core and stay near a square. Cut along the shorter side, a
    tensor is spread over few cores, or each core needs data of many others.

    ## What to do
    Try the `shard_layout` that is named, together with its neighbours: a reshard between two
    convolutions may cost more than it saves.

    ## When it is no problem
    It is a rule of thumb, and where both work the faster one is right.

    ## Where it looks
    The memory of the first input and the shape of the output of convolutions in the op table or,
    without a table, outputs and `shard_layout` in a report database.
    """

    code: ClassVar[str] = "TTP606"
    name: ClassVar[str] = "conv-sharding-unsuited"
    severity: ClassVar[Severity] = Severity.INFO
    needs: ClassVar[tuple[Input, ...]] = (Input.OPS, Input.REPORT)

    share: float = limit(0.0, unit="of convolutions", source="each is named")
    tall: float = limit(4, unit="pixels per channel", source="a judgement: height from there on")
    deep: float = limit(4, unit="channels per pixel", source="a judgement: width from there on")

    def check(self, subject: Subject) -> Answer:
        """Compare the share of convolutions that are sharded otherwise with the limit."""
        listed = convolutions(subject)
        if not listed:
            return not_applicable(NO_CONVOLUTIONS)
        suited = [(each, self._suited(each.output)) for each in listed if each.sharding]
        told = [(each, best) for each, best in suited if best is not None]
        if not told:
            return not_measured("the capture does not tell how convolutions are sharded")
        others = [_advised(each, best) for each, best in told if each.sharding != best]
        share, unit = len(others) / len(told), "of convolutions"
        if share <= self.share:
            return clean(share, limit=self.share, unit=unit)
        return found(
            f"a shape for another sharding in {len(others)} of {counted(len(told), 'convolution')}",
            value=share,
            limit=self.share,
            unit=unit,
            evidence=heaviest(others, of=whole_ns(subject)),
        )

    def _suited(self, shape: tuple[int, ...] | None) -> str | None:
        if not shape or not prod(shape):
            return None
        pixels, channels = prod(shape[:-1]), shape[-1]
        if pixels >= self.tall * channels:
            return "HEIGHT"
        return "WIDTH" if channels >= self.deep * pixels else "BLOCK"


def _advised(each: Convolution, best: str) -> Convolution:
    return each._replace(name=f"{each.name}, {each.sharding} → {best}")
