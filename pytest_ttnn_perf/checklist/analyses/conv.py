"""Convolutions: their sharding, blocks and buffers, and how near they come to their ideal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf.checklist.act_blocks import blocks_in_report, blocks_in_table
from pytest_ttnn_perf.checklist.analyses.judged import judged
from pytest_ttnn_perf.checklist.analyses.kind import Kind
from pytest_ttnn_perf.checklist.analyses.sections import Part, lost_time, section
from pytest_ttnn_perf.checklist.convolutions import NO_CONVOLUTIONS, convolutions, is_convolution
from pytest_ttnn_perf.checklist.op_times import kernel_ns, ops_like
from pytest_ttnn_perf.checklist.rule import not_applicable
from pytest_ttnn_perf.checklist.rules.ttp601_conv_sharding_changes import ConvShardingChanges
from pytest_ttnn_perf.checklist.rules.ttp602_act_block_h_below_max import ActBlockHBelowMax
from pytest_ttnn_perf.checklist.rules.ttp603_act_double_buffer_off import ActDoubleBufferOff
from pytest_ttnn_perf.checklist.rules.ttp604_weights_double_buffer_off import WeightsDoubleBufferOff
from pytest_ttnn_perf.checklist.rules.ttp605_batchnorm_not_folded import BatchnormNotFolded
from pytest_ttnn_perf.checklist.rules.ttp606_conv_sharding_unsuited import ConvShardingUnsuited
from pytest_ttnn_perf.checklist.rules.ttp607_low_conv_efficiency import LowConvEfficiency
from pytest_ttnn_perf.model.subject import Input

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_ttnn_perf.checklist.act_blocks import ActBlock
    from pytest_ttnn_perf.checklist.analyses.kind import Numbers
    from pytest_ttnn_perf.checklist.convolutions import Convolution
    from pytest_ttnn_perf.checklist.rule import Answer
    from pytest_ttnn_perf.model.analysis import Section
    from pytest_ttnn_perf.model.subject import Subject

_UNIT, _OF = "convolutions", "of convolutions"
_SWITCH: Final = {True: "on", False: "off", None: "not told"}
_RULES: Final = {
    "efficiency": LowConvEfficiency,
    "changes of sharding": ConvShardingChanges,
    "sharding unsuited to the shape": ConvShardingUnsuited,
    "activations not double-buffered": ActDoubleBufferOff,
    "weights not double-buffered": WeightsDoubleBufferOff,
    "room for a larger act_block_h": ActBlockHBelowMax,
    "not folded": BatchnormNotFolded,
}


def _look(subject: Subject) -> Numbers | Answer:
    listed = convolutions(subject)
    if not listed:
        return not_applicable(NO_CONVOLUTIONS)
    return judged(subject, _RULES, *_settings(subject, listed), *_times(subject, listed))


def _settings(subject: Subject, listed: Sequence[Convolution]) -> Iterator[Section]:
    sharded = (Part(each.sharding or "not told", 1) for each in listed)
    yield section("sharding", sharded, unit=_UNIT, of=_OF)
    buffers = {
        "activation double buffer": [each.act_double_buffer for each in listed],
        "weight double buffer": [each.weights_double_buffer for each in listed],
    }
    for heading, switches in buffers.items():
        yield section(heading, (Part(_SWITCH[on], 1) for on in switches), unit=_UNIT, of=_OF)
    blocks = (Part(_block(each), 1) for each in _blocks(subject))
    yield section("act_block_h", blocks, unit=_UNIT, of=_OF)


def _blocks(subject: Subject) -> Iterator[ActBlock]:
    if subject.ops is not None:
        yield from blocks_in_table(subject.ops)
    elif subject.report is not None:
        yield from blocks_in_report(subject.report)


def _block(block: ActBlock) -> str:
    return f"{block.rows} of {block.most_rows} rows" if block.is_told else "not told"


def _times(subject: Subject, listed: Sequence[Convolution]) -> Iterator[Section]:
    """Yield where time goes; a report does not tell."""
    if subject.ops is not None:
        whole, of = kernel_ns(subject.ops), "of kernel time"
        parts = (Part(each.name, each.kernel_ns or 0.0) for each in listed)
        yield section("convolutions", parts, unit="ns", of=of, whole=whole)
        yield lost_time(ops_like(subject.ops, is_convolution), whole=whole)


CONV: Final = Kind(
    "conv", "sharding, blocks, buffers and times of convolutions", (Input.OPS, Input.REPORT), _look
)
