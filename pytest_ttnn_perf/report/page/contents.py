"""What a page shows of a run and of those before it; everything is computed already.

Numbers are in the unit that their name or their metric says. Texts are plain text.
"""

from __future__ import annotations

from pytest_ttnn_perf._base.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class PageRun:
    """A run that histories are made of; ``started_at`` is by the clock of its host."""

    id: str
    started_at: str
    commit: str
    branch: str
    host: str
    label: str = ""


@dataclass(frozen=True, slots=True)
class PageChange:
    """A change of a history, between two of its points (places in its columns).

    ``change`` is by how much more it is than before (0.05 = 5 %). ``cause`` says what it comes
    from; ``command`` is what finds the commit, where that is code.
    """

    before: int
    after: int
    change: float
    worse: bool
    cause: str
    command: str = ""


@dataclass(frozen=True, slots=True)
class PageHistory:
    """The numbers of one metric, run after run, as columns of one length.

    ``runs`` are places in the page's runs. ``marks`` say what a run did to the baseline: accepted,
    stored, or nothing (""). ``outcomes`` are those of its verdicts ("" where there was none).
    """

    runs: tuple[int, ...] = ()
    values: tuple[float, ...] = ()
    outcomes: tuple[str, ...] = ()
    marks: tuple[str, ...] = ()
    changes: tuple[PageChange, ...] = ()


@dataclass(frozen=True, slots=True)
class PageMetric:
    """One metric of a test: what was measured, and what the gate says of it.

    ``scale`` is what numbers are multiplied by to be shown in ``unit`` (1e-6 and ms for
    nanoseconds). ``baseline`` is the middle of the baseline, ``limit`` what it may be at worst;
    both are None where there is no such thing. ``better`` is lower, higher or equal. ``sentence``
    is the verdict as the terminal has it, and ``change`` its change as read (minus is lower): it
    may be without what the machine did to all tests, so it does not follow from the two numbers.
    """

    name: str
    unit: str
    scale: float
    better: str
    outcome: str
    sentence: str
    value: float | None = None
    baseline: float | None = None
    limit: float | None = None
    target: float | None = None
    gated: bool = True
    why_ungated: str = ""
    samples: tuple[float, ...] = ()
    confirmations: tuple[tuple[float, ...], ...] = ()
    history: PageHistory = PageHistory()
    change: float | None = None


@dataclass(frozen=True, slots=True)
class PageFinding:
    """What the checklist says. ``saving_us`` is per call of the region; None where unknown.

    ``state`` is found, waived or not measured. ``fix`` are lines of what to do about it.
    """

    code: str
    title: str
    state: str
    fails: bool = False
    region: str = ""
    saving_us: float | None = None
    share: float | None = None
    evidence: tuple[str, ...] = ()
    fix: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PagePart:
    """A part of a change: an op, or a group of them, and by how much it took longer."""

    name: str
    change_us: float
    cause: str = ""


@dataclass(frozen=True, slots=True)
class PageWaterfall:
    """A change of a time by op: ``before_us`` and all parts together are ``after_us``."""

    metric: str
    region: str
    before_us: float
    after_us: float
    parts: tuple[PagePart, ...] = ()


@dataclass(frozen=True, slots=True)
class PageOp:
    """Ops of one kind and shape in a region. Times are per call of the region.

    ``ideal_us`` is what the roofline allows, ``bound`` what by: dram, compute or neither ("").
    ``intensity`` is in FLOPs per byte of DRAM, ``tflops`` what was reached; None where unknown.
    """

    name: str
    shape: str
    calls: float
    time_us: float
    share: float
    ideal_us: float | None = None
    bound: str = ""
    cores: int | None = None
    intensity: float | None = None
    tflops: float | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class PageRoof:
    """What the hardware can do at best, for a roofline: a bandwidth, and peaks by their name."""

    dram_gb_s: float
    peaks_tflops: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class PageRegion:
    """A region of a test's capture, with its ops, the longest first."""

    name: str
    time_us: float
    calls: int
    ops: tuple[PageOp, ...] = ()
    roof: PageRoof | None = None
    bottleneck: str = ""


@dataclass(frozen=True, slots=True)
class PageLane:
    """What one device did, as columns of one length; ``names`` are places in the timeline's.

    ``kinds`` are k (kernel), w (a collective that waits for others) and h (host). What is between
    two spans is a gap.
    """

    device: str
    starts_us: tuple[float, ...]
    durations_us: tuple[float, ...]
    names: tuple[int, ...]
    kinds: str


@dataclass(frozen=True, slots=True)
class PageTimeline:
    """What devices did in one call of a region, from its first start on."""

    region: str
    names: tuple[str, ...]
    lanes: tuple[PageLane, ...]
    shortened: str = ""


@dataclass(frozen=True, slots=True)
class PageTest:
    """One test. ``outcome`` is the word for it; ``worst`` sorts tests, 0 is the worst."""

    id: str
    outcome: str
    failed: bool
    worst: int
    key: str
    setting: tuple[tuple[str, str], ...] = ()
    summary: str = ""
    by_op: str = ""
    commands: tuple[str, ...] = ()
    metrics: tuple[PageMetric, ...] = ()
    findings: tuple[PageFinding, ...] = ()
    waterfalls: tuple[PageWaterfall, ...] = ()
    regions: tuple[PageRegion, ...] = ()
    timelines: tuple[PageTimeline, ...] = ()
    visualizer: str = ""
    trace: str = ""


@dataclass(frozen=True, slots=True)
class PageDifference:
    """What differs between the environment of the run and that of runs before it."""

    name: str
    before: str
    now: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class PageTrend:
    """A change of one or many series, as ``ttnn-perf trends`` tells it."""

    title: str
    detail: tuple[str, ...]
    worse: bool
    kind: str
    tests: tuple[str, ...] = ()
    command: str = ""


@dataclass(frozen=True, slots=True)
class PagePoint:
    """A point of a sweep: its values along the axes, and its numbers (None: out of memory)."""

    test: str
    axes: tuple[tuple[str, str], ...]
    values: tuple[float | None, ...]
    best: bool = False
    note: str = ""


@dataclass(frozen=True, slots=True)
class PageColumn:
    """A metric of all points of a sweep; as in ``PageMetric``."""

    name: str
    unit: str
    scale: float


@dataclass(frozen=True, slots=True)
class PageSweep:
    """A sweep: a table of its points."""

    name: str
    metrics: tuple[PageColumn, ...]
    points: tuple[PagePoint, ...]
    summary: str = ""


@dataclass(frozen=True, slots=True)
class PageStep:
    """A step of optimizing a test, ``kept`` if it was and no other replaced it since.

    ``change``, ``low``, ``high`` and ``device`` are fractions (minus is lower); None where unknown.
    """

    message: str
    decision: str
    kept: bool
    change: float | None = None
    low: float | None = None
    high: float | None = None
    device: float | None = None
    accuracy: float | None = None
    why: str = ""


@dataclass(frozen=True, slots=True)
class PageJournal:
    """How a test got from ``first`` to ``now``.

    Numbers are in the unit of the metric; as in ``PageMetric``. ``remaining`` says what is left.
    """

    test: str
    metric: str
    unit: str
    scale: float
    first: float
    now: float
    steps: tuple[PageStep, ...]
    remaining: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Page:
    """A page. ``facts`` head it: commit, host, hardware, when; ``notes`` are what limits it."""

    title: str
    headline: str
    failed: bool
    facts: tuple[tuple[str, str], ...]
    counts: tuple[tuple[str, int], ...]
    runs: tuple[PageRun, ...]
    tests: tuple[PageTest, ...]
    differences: tuple[PageDifference, ...] = ()
    trends: tuple[PageTrend, ...] = ()
    sweeps: tuple[PageSweep, ...] = ()
    journals: tuple[PageJournal, ...] = ()
    notes: tuple[str, ...] = ()
