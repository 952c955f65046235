"""Variables with which no time means anything."""

from __future__ import annotations

import pytest

from pytest_ttnn_perf.device.environment import conflicts, impossible


def variables(**environment: str) -> list[str]:
    return [conflict.variable for conflict in conflicts(environment)]


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("TT_METAL_DEVICE_PROFILER", "1"),
        ("TT_METAL_DEVICE_PROFILER", "0"),
        ("TT_METAL_DEVICE_PROFILER_NOC_EVENTS", "1"),
        ("TT_METAL_DEVICE_PROFILER_DISPATCH", "1"),
        ("TT_METAL_PROFILE_PERF_COUNTERS", "31"),
        ("TT_METAL_PROFILER_ACCUMULATE", "1"),
        ("TT_METAL_PROFILER_MID_RUN_DUMP", "1"),
        ("TT_METAL_STREAMING_PROFILER", "1"),
        ("TT_METAL_MEM_PROFILER", "1"),
        ("TTNN_OP_PROFILER", "1"),
        ("TT_METAL_WATCHER", "0"),
        ("TT_METAL_WATCHER", "120"),
        ("TT_METAL_DPRINT_CORES", "all"),
        ("TT_METAL_DPRINT_ETH_CORES", "(0,0)"),
        ("TT_METAL_SLOW_DISPATCH_MODE", "0"),
        ("TT_METAL_LLK_ASSERTS", "0"),
        ("TT_METAL_LIGHTWEIGHT_KERNEL_ASSERTS", "1"),
        ("TT_METAL_NULL_KERNELS", "1"),
        ("TTLANG_PERF_DUMP", "1"),
        ("TTLANG_AUTO_PROFILE", "1"),
        ("TTLANG_SIGNPOST_PROFILE", "1"),
        ("TTLANG_COMPILE_ONLY", "1"),
    ],
)
def test_a_variable_that_must_not_be_set(variable: str, value: str) -> None:
    (conflict,) = conflicts({"HOME": "/home/a", variable: value})
    assert conflict.sentence.startswith(f"{variable}={value} ")
    assert conflict.remedy == f"unset {variable}"
    assert str(conflict) == f"{conflict.sentence}: unset {variable}"
    assert impossible({variable: value}) == ()


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("TT_METAL_DEVICE_PROFILER_NOC_EVENTS", "0"),
        ("TT_METAL_PROFILER_SYNC", "0"),
        ("TT_METAL_PROFILE_PERF_COUNTERS", "0"),
        ("TT_METAL_PROFILER_DIR", "/profiles"),
        ("TT_METAL_PROFILER_PROGRAM_SUPPORT_COUNT", "10000"),
        ("TT_METAL_DPRINT_FILE", "prints.log"),
        ("TT_METAL_WATCHER_NOINLINE", "1"),
        ("TTLANG_PERF_DUMP", "0"),
        ("TTLANG_AUTO_PROFILE", ""),
        ("TTNN_CONFIG_OVERRIDES", ""),
        ("TTNN_CONFIG_OVERRIDES", '{"enable_model_cache": true, "enable_logging": false}'),
        ("TTNN_CONFIG_OVERRIDES", '{"enable_fast_runtime_mode": true}'),
        ("TT_METAL_CACHE", "/cache"),
    ],
)
def test_a_variable_that_may_be_set(variable: str, value: str) -> None:
    assert conflicts({variable: value}) == ()


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ('{"enable_logging": true}', "enable_logging"),
        ('{"enable_comparison_mode": true}', "enable_comparison_mode"),
        ('{"enable_graph_report": true}', "enable_graph_report"),
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


@pytest.mark.parametrize("text", ["{", "[]", "1", '"enable_logging"', "[" * 10_000])
def test_settings_of_ttnn_that_are_none(text: str) -> None:
    (conflict,) = conflicts({"TTNN_CONFIG_OVERRIDES": text})
    assert (conflict.value, conflict.why) == (
        text,
        "is no JSON object, over which ttnn ends the process that imports it",
    )
    assert conflict.remedy == "correct or unset TTNN_CONFIG_OVERRIDES"


def test_a_simulator_has_no_other_way_to_dispatch() -> None:
    assert variables(TT_METAL_SLOW_DISPATCH_MODE="1", TT_METAL_SIMULATOR="/sim.so") == []


@pytest.mark.parametrize(
    ("first", "second", "why"),
    [
        (
            ("TT_METAL_DEVICE_PROFILER", "1"),
            ("TT_METAL_DPRINT_CORES", "all"),
            "are refused together: prints and profile share the same memory",
        ),
        (
            ("TT_METAL_DEVICE_PROFILER_NOC_EVENTS", "1"),
            ("TT_METAL_WATCHER", "1"),
            "damage each other's data: watcher and profile share the same memory",
        ),
        (
            ("TTLANG_AUTO_PROFILE", "1"),
            ("TTLANG_PERF_DUMP", "1"),
            "cannot be had together: each profiles the same kernels in its own way",
        ),
        (
            ("TTLANG_AUTO_PROFILE", "1"),
            ("TTLANG_SIGNPOST_PROFILE", "1"),
            "cannot be had together: each profiles the same kernels in its own way",
        ),
        (
            ("TT_METAL_PROFILER_DIR", "/profiles"),
            ("TTLANG_PERF_DUMP", "1"),
            "cannot be had together: tt-lang reads the profile from TT_METAL_HOME only",
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


def test_a_profiler_that_is_set_to_0_is_in_nobody_s_way_but_of_wall_times() -> None:
    environment = {"TT_METAL_DEVICE_PROFILER": "0", "TT_METAL_DPRINT_CORES": "all"}
    assert impossible(environment) == ()
    assert variables(**environment) == ["TT_METAL_DEVICE_PROFILER", "TT_METAL_DPRINT_CORES"]
