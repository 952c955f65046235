"""Variables that change times, or never work together."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_ttnn_perf.machine.environment import worker_variables
from pytest_ttnn_perf.machine.inspection import conflicts, impossible


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("TT_METAL_DEVICE_PROFILER", "1"),
        ("TT_METAL_DEVICE_PROFILER_NOC_EVENTS", "1"),
        ("TT_METAL_PROFILE_PERF_COUNTERS", "31"),
        ("TT_METAL_WATCHER", "0"),
        ("TT_METAL_DPRINT_CORES", "all"),
        ("TT_METAL_SLOW_DISPATCH_MODE", "0"),
        ("TTLANG_PERF_DUMP", "1"),
    ],
)
def test_a_variable_that_must_not_be_set(variable: str, value: str) -> None:
    harmless = {
        "TT_METAL_PROFILER_SYNC": "0",
        "TT_METAL_DPRINT_FILE": "prints.log",
        "TTLANG_AUTO_PROFILE": "0",
        "TTNN_CONFIG_OVERRIDES": '{"enable_model_cache": true, "enable_logging": false}',
    }
    assert conflicts(harmless) == ()
    (conflict,) = conflicts({"HOME": "/home/a", variable: value})
    assert conflict.sentence.startswith(f"{variable}={value} ")
    assert conflict.remedy == f"unset {variable}"
    assert str(conflict) == f"{conflict.sentence}: unset {variable}"
    assert impossible({variable: value}) == ()


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ('{"enable_logging": true}', "enable_logging"),
        ('{"enable_fast_runtime_mode": false}', "enable_fast_runtime_mode"),
        (
            '{"enable_detailed_buffer_report": true, "enable_logging": true}',
            "enable_logging, enable_detailed_buffer_report",
        ),
    ],
)
def test_settings_of_ttnn_that_slow_it_down(settings: str, named: str) -> None:
    (conflict,) = conflicts({"TTNN_CONFIG_OVERRIDES": settings})
    assert conflict.sentence == (
        f"TTNN_CONFIG_OVERRIDES={settings} makes every operation slower: {named}"
    )
    assert conflict.remedy == f"take {named} out of TTNN_CONFIG_OVERRIDES"


@pytest.mark.parametrize(
    ("first", "second", "why"),
    [
        (
            ("TT_METAL_DEVICE_PROFILER", "1"),
            ("TT_METAL_DPRINT_CORES", "all"),
            "are refused together: prints and profile share the same memory",
        ),
        (
            ("TT_METAL_PROFILER_DIR", "/profiles"),
            ("TTLANG_PERF_DUMP", "1"),
            "cannot be used together: tt-lang reads the profile from TT_METAL_HOME only",
        ),
    ],
)
def test_what_never_works_together(
    first: tuple[str, str], second: tuple[str, str], why: str
) -> None:
    environment = dict([first, second])
    (conflict,) = impossible(environment)
    assert conflict.sentence == f"{first[0]} + {second[0]} {why}"
    assert conflict.value == f"{first[1]} + {second[1]}"
    assert conflict.remedy == f"unset {first[0]} or {second[0]}"
    assert conflicts(environment)[0] == conflict


FOLDER = Path("/runs/1-device")
GIVEN = {
    "TT_METAL_LOGS_PATH": "/runs/1-device/logs",
    "TT_METAL_OPERATION_TIMEOUT_SECONDS": "300",
}


def test_what_the_user_has_set_stays() -> None:
    assert worker_variables({}, FOLDER) == GIVEN
    for name in GIVEN:
        others = {other: given for other, given in GIVEN.items() if other != name}
        for value in ("", "/elsewhere"):
            assert worker_variables({name: value}, FOLDER) == others
