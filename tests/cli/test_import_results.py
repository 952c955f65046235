"""Results of benchmarks: imported, accepted, judged, shown and attached to a test."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.harness.benchmarks import (
    DEMO,
    complete_run,
    measurement,
    vllm_result,
    write_json,
)

if TYPE_CHECKING:
    from tests.harness.project import Project

TEST = "benchmark:falcon-7b::demo[batch=32,isl=128,osl=128]"
DECODE = "tokens/s/user.inference_decode"


def write(project: Project, name: str, document: object) -> None:
    write_json(project.path / name, document)


def demo(*, decode: object) -> dict[str, object]:
    """Return the result of a demo that decodes this many tokens per second and user."""
    return complete_run(
        *(
            measurement(step, name, decode if name == "tokens/s/user" else value, target)
            for step, name, value, target in DEMO
        )
    )


def accepted(project: Project) -> None:
    for number, speed in enumerate((17.1, 17.2, 17.15)):
        write(project, f"night-{number}.json", demo(decode=speed))
        ran = project.cli("baseline", "accept", f"night-{number}.json")
        assert ran.code == 0, ran.text + ran.errors


def test_a_result_is_accepted_and_judged(project: Project) -> None:
    accepted(project)
    write(project, "same.json", demo(decode=17.16))
    write(project, "slow.json", demo(decode=12.0))

    same, slow = project.cli("gate", "same.json"), project.cli("gate", "slow.json")

    assert same.code == 0, same.text
    assert "1 test gated; metrics: 4 WITHIN; 1 recorded only" in same.text
    assert slow.code == 1
    assert f"REGRESSED {TEST}: {DECODE} 30.0 % lower, limit" in slow.text


def test_import_says_what_is_gated_and_why_not(project: Project) -> None:
    write(project, "a.json", complete_run(*map(_of, DEMO), measurement("demo", "mood", 7.0)))

    ran = project.cli("import", "a.json", "--json", "run.json")

    assert ran.code == 0
    assert "not gated, a compile time: time(s).compile_prefill" in ran.text.splitlines()
    assert "not gated, unknown measurement name: mood.demo" in ran.text.splitlines()
    assert "1 test on wormhole_b0-n150: 4 metrics gated, 2 recorded only" in ran.text
    (recorded,) = json.loads((project.path / "run.json").read_text())["tests"].values()
    mood = recorded["metrics"]["mood.demo"]
    assert (mood["gated"], mood["why_ungated"]) == (False, "unknown measurement name")
    assert project.cli("baseline", "accept", "run.json").code == 0
    assert project.cli("gate", "run.json").code == 0


def _of(parts: tuple[str, str, float, float | None]) -> dict[str, object]:
    return measurement(*parts)


def test_hardware_that_is_not_said_is_asked_for(project: Project) -> None:
    write(project, "serving.json", vllm_result())
    (project.path / "baselines").mkdir()

    refused = project.cli("gate", "serving.json")
    ran = project.cli("import", "serving.json", "--hardware", "wormhole_b0-n150-1x1", "--json", "r")

    assert refused.code == 3
    assert "serving.json: it does not say on which board it was measured" in refused.errors
    assert "ttnn-perf gate serving.json --hardware ARCH-BOARD[-MESH]" in refused.errors
    said = project.cli("gate", "serving.json", "--hardware", "wormhole_b0-n150-1x1")
    first = "filed under wormhole_b0-n150-1x1, as --hardware says: serving.json"
    assert said.text.splitlines()[0] == first
    assert "NO_BASELINE" in said.text
    assert ran.code == 0
    assert "1 test on wormhole_b0-n150-1x1: 6 metrics gated, 7 recorded only" in ran.text
