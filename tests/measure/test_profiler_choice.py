"""Which profiler a run uses: every row of the decision, and every refusal."""

from __future__ import annotations

import pytest

from pytest_ttnn_perf.core.errors import UsageError
from pytest_ttnn_perf.core.settings import ProfilerKind
from pytest_ttnn_perf.machine.inspection import Build
from pytest_ttnn_perf.plugin.preflight import ProfilerChoice, choose

AUTO, OFF, REALTIME = ProfilerKind.AUTO, ProfilerKind.OFF, ProfilerKind.REALTIME
DEVICE, TRACY, TTLANG = ProfilerKind.DEVICE, ProfilerKind.TRACY, ProfilerKind.TTLANG
WITH_TRACY = Build("0.81.1", "/site/ttnn", tracy=True, arch="wormhole_b0")
WITHOUT = Build("0.81.1", "/site/ttnn", tracy=False, arch="blackhole")
MOCK = {"TT_METAL_MOCK_CLUSTER_DESC_PATH": "mock.yaml"}
SIMULATOR = {"TT_METAL_SIMULATOR": "/sim.so"}
#: Builds and environments in which no profiler works, and why.
HOPELESS: dict[str, tuple[Build, dict[str, str], str]] = {
    "none installed": (Build(None), {}, "no ttnn is installed"),
    "broken": (
        Build("1.0", "/site/ttnn", problem="was killed by SIGSEGV", tracy=True, arch="blackhole"),
        {},
        "ttnn cannot be used: was killed by SIGSEGV",
    ),
    "mock": (WITH_TRACY, MOCK, "a simulated device has no times"),
    "simulator": (WITHOUT, SIMULATOR, "a simulated device has no times"),
    "no hardware": (Build("1.0", "/site/ttnn", tracy=True), {}, "no device was found"),
}


@pytest.mark.parametrize(
    ("asked", "build", "kind", "why"),
    [
        (AUTO, WITH_TRACY, DEVICE, "ttnn 0.81.1 is Tracy-enabled"),
        (AUTO, WITHOUT, REALTIME, "ttnn 0.81.1 is built without Tracy"),
        (REALTIME, WITH_TRACY, REALTIME, "as asked"),
        (DEVICE, WITH_TRACY, DEVICE, "as asked"),
        (TRACY, WITH_TRACY, TRACY, "as asked"),
    ],
    ids=lambda value: value.value if isinstance(value, ProfilerKind) else "",
)
def test_with_a_device_what_was_asked_for_is_had(
    asked: ProfilerKind, build: Build, kind: ProfilerKind, why: str
) -> None:
    choice = choose(asked, build, {})
    assert choice == ProfilerChoice(kind, why)
    assert str(choice) == f"profiler {kind.value} ({why})"


@pytest.mark.parametrize("asked", [REALTIME, DEVICE, TRACY, TTLANG], ids=lambda kind: kind.value)
@pytest.mark.parametrize("case", HOPELESS.values(), ids=HOPELESS)
def test_where_none_works_none_can_be_asked_for(
    case: tuple[Build, dict[str, str], str], asked: ProfilerKind
) -> None:
    build, environment, why = case
    with pytest.raises(UsageError) as raised:
        choose(asked, build, environment)
    assert str(raised.value) == f"--ttnn-perf-profiler {asked.value}: {why}; use auto, or off"


@pytest.mark.parametrize("asked", [DEVICE, TRACY, TTLANG], ids=lambda kind: kind.value)
@pytest.mark.parametrize("tracy", [False, None], ids=["without", "unknown"])
def test_a_build_without_tracy_refuses_what_needs_it(
    asked: ProfilerKind, tracy: bool | None
) -> None:
    build = Build("0.82.0", "/site/ttnn", tracy=tracy, arch="blackhole")
    with pytest.raises(UsageError) as raised:
        choose(asked, build, {})
    assert str(raised.value) == (
        f"--ttnn-perf-profiler {asked.value}: ttnn 0.82.0 is built without Tracy; use realtime, "
        "or a Tracy-enabled build"
    )
