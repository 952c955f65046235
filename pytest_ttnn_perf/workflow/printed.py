"""What tt-lang's profilers said among the output of a test."""

from __future__ import annotations

from pathlib import Path

from pytest_ttnn_perf.capture.ttlang import is_ttlang_log, parse_ttlang
from pytest_ttnn_perf.measure.printed import kept_output
from pytest_ttnn_perf.model.artifact import NO_ARTIFACT, Artifact
from pytest_ttnn_perf.workflow.kernel_metrics import kernel_metrics

__all__ = ["kept_output", "printed_artifact"]

_STDOUT = "stdout"


def printed_artifact(text: str) -> Artifact:
    """Return what tt-lang printed among the output of a test; nothing of a test without any."""
    text = text.replace("\0", "")
    if not is_ttlang_log(text):
        return NO_ARTIFACT
    log = parse_ttlang(text, Path(_STDOUT))
    arch = next((summary.arch for summary in log.perf_summaries if summary.arch), None)
    return Artifact(tuple(kernel_metrics(log, file=_STDOUT)), arch=arch, kernels=log)
