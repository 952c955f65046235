"""What is stored to compare with."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_ttnn_perf.model.hardware import Configuration, Hardware

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_ttnn_perf.model.hardware import Scalar
    from pytest_ttnn_perf.model.metric import Metric
    from pytest_ttnn_perf.model.op_groups import OpGroups

#: The version of the baseline file's schema that this code writes.
BASELINE_FORMAT: Final = 1

#: Sessions kept on each side of the last accept. A full list is never rolled: dropping the
#: oldest session for the newest would let the centre creep by steps too small to fail.
MAX_SESSIONS: Final = 20


class Session(NamedTuple):
    """What one process measured: median and MAD (unscaled) in the metric's unit, of n samples.

    A tuple, as it is in the file: the gate turns thousands of them into columns.
    """

    median: float
    mad: float
    n: int


@dataclass(frozen=True, slots=True)
class MetricBaseline:
    """The sessions of one metric, newest last; those from ``since`` on follow the last accept."""

    metric: Metric
    sessions: tuple[Session, ...]
    since: int = 0

    @property
    def current(self) -> tuple[Session, ...]:
        """The sessions since the last accept: the ones the centre is taken of."""
        return self.sessions[self.since :]


@dataclass(frozen=True, slots=True)
class Accepted:
    """Who the stored numbers come from: when, at which commit, why, with which ttnn.

    ``environment`` is what else a change of the whole machine might be explained with.
    """

    at: str
    commit: str | None = None
    reason: str | None = None
    ttnn: str | None = None
    environment: Mapping[str, Scalar] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TestBaseline:
    """The stored numbers of one test.

    ``ops`` is the place of its op table, relative to the key's folder; ``op_table`` that table
    itself, of a baseline that is yet to be written.
    """

    __test__ = False  # a record, not something for pytest to collect

    accepted: Accepted
    metrics: Mapping[str, MetricBaseline]
    configuration: Configuration = Configuration()
    ops: str | None = None
    op_table: OpGroups | None = None


@dataclass(frozen=True, slots=True)
class BaselineFile:
    """The baselines of one test file on one hardware key.

    ``test_file`` is stated only where the file's own name does not tell (shortened names).
    """

    hardware: Hardware
    tests: Mapping[str, TestBaseline] = field(default_factory=dict)
    test_file: str | None = None
