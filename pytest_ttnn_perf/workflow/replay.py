"""Artifacts that were recorded on other machines, in place of this one's device."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._support.errors import InputError, TtnnPerfError
from pytest_ttnn_perf.baselines.paths import ops_path, split_test_id
from pytest_ttnn_perf.capture.detect import ArtifactKind, kind_of
from pytest_ttnn_perf.model.artifact import NO_ARTIFACT, Artifact
from pytest_ttnn_perf.model.hardware import Hardware
from pytest_ttnn_perf.model.metric import KERNEL_TIME, Kind, Source
from pytest_ttnn_perf.model.observation import MetricObservation
from pytest_ttnn_perf.workflow.artifacts import ARTIFACTS, read_artifact
from pytest_ttnn_perf.workflow.recorded import recorded

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from pytest_ttnn_perf.model.observation import Observation

#: Formats that tell the same of the same programs; of those that a folder has, the first counts.
_SAME: Final = (
    (ArtifactKind.OPS_CSV, ArtifactKind.CPP_REPORT, ArtifactKind.DEVICE_LOG),
    (ArtifactKind.REPORT_DB, ArtifactKind.GRAPH_JSON),
    (ArtifactKind.PERF_SUMMARY_JSON, ArtifactKind.TTLANG_LOG),
    (ArtifactKind.SIM_TRACE, ArtifactKind.SIM_STATS),
)
_UNKNOWN: Final = "unknown"


def replayed(root: Path, test: str) -> Artifact:
    """Return what was recorded of a test, all artifacts as one; a device's numbers as replayed.

    A test of which nothing was recorded, or something that is damaged, has a kernel time without
    samples that says so.
    """
    files = _recorded(root, test)
    if not files:
        places = dict.fromkeys(f"{place.relative_to(root)}.*" for place in _places(root, test))
        wanted = " or ".join(places)
        return _nothing(f"nothing is recorded of this test in {root.name}: expected {wanted}")
    by_kind: dict[ArtifactKind, list[Path]] = defaultdict(list)
    for file, kind in _known(files):
        by_kind[kind].append(file)
    if not by_kind:
        return _nothing(f"{files[0].name}: no artifact of a known format is recorded of this test")
    for same in _SAME:
        for doubled in [kind for kind in same if kind in by_kind][1:]:
            del by_kind[doubled]
    try:
        read = {file: read_artifact(file) for group in by_kind.values() for file in group}
    except TtnnPerfError as error:
        return _nothing(str(error))
    problem = _told_twice(read)
    if problem is not None:
        return _nothing(problem)
    whole = reduce(Artifact.completed_by, read.values(), NO_ARTIFACT)
    return replace(whole, metrics=tuple(map(_as_replayed, whole.metrics)))


def _told_twice(read: Mapping[Path, Artifact]) -> str | None:
    """Say which files tell the same: the middle of two captures is the time of neither."""
    told: dict[str, Path] = {}
    for file, artifact in read.items():
        for observed in artifact.metrics:
            first = told.setdefault(observed.metric.name, file)
            if first != file:
                both = f"{first.name} and {file.name}"
                name = observed.metric.name
                return f"{both} both tell {name}: keep one capture of each kind for a test"
    return None


def without_own_times(observation: Observation, artifact: Artifact) -> Observation:
    """Return an observation as one of the recorded hardware.

    What this machine took is left out: it would be filed as the time of a device that it lacks.
    """
    metrics = {
        name: observed
        for name, observed in observation.metrics.items()
        if observed.metric.source is not Source.WALL or not observed.metric.compared_by_ratio
    }
    hardware = None
    if artifact.arch or artifact.board or artifact.devices:
        mesh = f"1x{artifact.devices or 1}"
        hardware = Hardware(artifact.arch or _UNKNOWN, artifact.board or _UNKNOWN, mesh)
    return replace(observation, metrics=metrics, hardware=hardware)


def _places(root: Path, test: str) -> Iterator[Path]:
    """Yield where the artifacts of a test may be: by its name, or as baselines spell it."""
    test_file, name = split_test_id(test)
    if "/" not in name and len(name.encode()) < 200:
        yield root / test_file.removesuffix(".py") / name
    escaped = root / ops_path(test).with_suffix("")
    yield escaped.parent.with_suffix("") / escaped.name


def _recorded(root: Path, test: str) -> list[Path]:
    """Return the files of a test: those in the folder of its name, or named as it."""
    for place in _places(root, test):
        if place.is_dir():
            return sorted(file for file in place.rglob("*") if file.is_file())
        if place.parent.is_dir():
            beside = (file for file in place.parent.iterdir() if file.stem == place.name)
            found = sorted(file for file in beside if file.is_file())
            if found:
                return found
    return []


def _known(files: list[Path]) -> Iterator[tuple[Path, ArtifactKind]]:
    """Yield the artifacts among files; a profiler leaves many others beside them."""
    for file in files:
        try:
            kind = kind_of(file)
        except InputError:
            continue
        if kind in ARTIFACTS:
            yield file, kind


def _as_replayed(observed: MetricObservation) -> MetricObservation:
    if observed.metric.source is not Source.DEVICE:
        return observed
    return replace(observed, metric=replace(observed.metric, source=Source.REPLAY))


def _nothing(why: str) -> Artifact:
    time = recorded(KERNEL_TIME, Kind.TIME, source=Source.REPLAY)
    return Artifact((MetricObservation(time, (), note=why),))
