"""What a checklist looks at: everything that is known of one test, or of artifacts alone."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_ttnn_perf.model.build import Conflict
    from pytest_ttnn_perf.model.hardware import Scalar
    from pytest_ttnn_perf.model.observation import Observation
    from pytest_ttnn_perf.model.ops import OpTable
    from pytest_ttnn_perf.model.report import Report
    from pytest_ttnn_perf.model.ttlang import TtlangLog
    from pytest_ttnn_perf.model.verdict import Verdict


class Input(Enum):
    """What rules need, in the words of a reason."""

    OPS = "an op table"
    REPORT = "a report database"
    KERNELS = "output of tt-lang"
    TEST = "a measured test"
    DEVICE = "a device, or facts that are stated of one"


@dataclass(frozen=True, slots=True)
class Subject:
    """The inputs of a checklist; None for those that there are none of.

    ``ops`` are of one window: of a test, its measured call. ``facts`` are what the author stated
    and what was observed of the device (``num_command_queues``, ``use_trace`` ...). ``conflicts``
    are variables that were set while times were taken; None where nobody looked. ``verdicts`` are
    what the gate says of the test's metrics; None where it was not judged yet. ``absent`` says why
    an input is not there, if that is known.
    """

    ops: OpTable | None = None
    report: Report | None = None
    kernels: TtlangLog | None = None
    observation: Observation | None = None
    facts: Mapping[str, Scalar] = field(default_factory=dict)
    conflicts: tuple[Conflict, ...] | None = None
    verdicts: tuple[Verdict, ...] | None = None
    absent: Mapping[Input, str] = field(default_factory=dict)

    def has(self, needed: Input) -> bool:
        """Tell whether an input is there; a table without ops of a device is none."""
        match needed:
            case Input.OPS:
                return self.ops is not None and bool(self.ops.devices)
            case Input.REPORT:
                return self.report is not None
            case Input.KERNELS:
                return self.kernels is not None
            case Input.TEST:
                return self.observation is not None
            case Input.DEVICE:
                told = (self.ops, self.report, self.kernels)
                return bool(self.facts) or any(each is not None for each in told)

    def why_absent(self, needed: Input) -> str:
        """Say why an input is not there."""
        return self.absent.get(needed, f"needs {needed.value}")
