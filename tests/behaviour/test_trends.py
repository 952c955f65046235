"""``ttnn-perf trends``: what changed, between which commits, on which hosts."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Any

import pytest

from pytest_ttnn_perf.cli.main import parse
from pytest_ttnn_perf.core.ops import OpGroup, OpGroups, Signature, encode_groups
from pytest_ttnn_perf.experiments.repository import Repository
from tests.harness.golden import assert_golden
from tests.harness.histories import TEST, Histories, document, edited, wobbled

if TYPE_CHECKING:
    from tests.harness.project import Project

#: Noise of up to 2 %.
NOISE = (0.0, 1.3, -0.9, 0.4, -1.9, 2.0, -0.3, 0.8, -1.4, 0.2, 1.7)
HOSTS = ("runner-1", "runner-2", "runner-3")
TESTS = tuple(f"models/test_llama.py::test_layer[{number}]" for number in range(6))


def changes(project: Project) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = document(project, "trends")["changes"]
    return found


def test_a_constant_test_has_no_change(histories: Histories, project: Project) -> None:
    histories.nights([10.0] * 20)
    ran = project.cli("trends")
    assert (ran.code, ran.text.strip()) == (0, "no change in 1 series of 20 runs")


@pytest.mark.parametrize(("after", "way"), [(10.6, "worse"), (9.4, "better")])
def test_a_change_is_between_two_commits(
    histories: Histories, project: Project, after: float, way: str
) -> None:
    commits = histories.nights([10.0] * 12 + [after] * 8, HOSTS)
    (change,) = changes(project)
    assert (change["cause"], change["direction"]) == ("code", way)
    assert (change["good"], change["bad"]) == (commits[11], commits[12])
    assert change["change"] == pytest.approx(after / 10 - 1, abs=0.003)
    assert change["hosts"] == "runner-1, runner-2, runner-3"
    good, bad = commits[11][:12], commits[12][:12]
    command = f"ttnn-perf bisect {good} {bad} --metric latency {TEST}"
    assert change["command"] == (command if way == "worse" else None)
    if way == "worse":  # as the command itself reads it, in this repository
        options = parse(shlex.split(command)[1:])
        assert (options.good, options.metric, options.rest) == (good, "latency", [bad, TEST])
        repository = Repository.around(histories.path)
        found = repository.between(repository.commit(good), repository.commit(bad))
        assert [each.id for each in found] == [commits[12]]


def test_bisect_is_given_the_id_that_pytest_knows(histories: Histories, project: Project) -> None:
    histories.nights([10.0] * 12 + [11.0] * 8)
    for file in histories.made:
        with edited(file) as read:
            read["tests"][TEST]["node_id"] = f"{TEST}[8-expected 21.4]"
    (change,) = changes(project)
    assert shlex.split(change["command"])[-1] == f"{TEST}[8-expected 21.4]"


def test_a_throughput_that_falls_is_worse(histories: Histories, project: Project) -> None:
    histories.nights([10.0] * 12 + [9.0] * 8)
    for file in histories.made:
        with edited(file) as read:
            read["tests"][TEST]["metrics"]["latency"]["unit"] = "tok/s"
    (change,) = changes(project)
    assert change["direction"] == "worse"
    assert change["change"] == pytest.approx(-0.1, abs=0.003)


def fleet(histories: Histories, firmware: str = "18.3.0") -> None:
    """Write 48 nights of six tests on three hosts; one is 5 % slower from a night on.

    From then on, that one has this firmware.
    """
    for day, commit in enumerate(histories.commits(48)):
        host = HOSTS[day * 7 % 3]
        slow = host == "runner-2" and day >= 24
        values = layers(1.05 if slow else 1.0, day)
        device = {"firmware": firmware if slow else "18.3.0"}
        histories.record(commit, values, day=day, host=host, device=device)


def layers(factor: float, day: int) -> dict[str, float]:
    """Return what six tests measure in a night; the n-th takes n times as long as the first."""
    return {t: wobbled(10.0 * factor * (1 + n), day * 3 + n) for n, t in enumerate(TESTS)}


def keyed_by_host(histories: Histories) -> None:
    """Make records those of a project that gives every host its own baselines."""
    for file in histories.made:
        with edited(file) as read:
            read["hardware"]["host"] = read["environment"]["runner"].replace("-", "_")


def test_hosts_are_compared_where_each_has_a_key_of_its_own(
    histories: Histories, project: Project
) -> None:
    fleet(histories, firmware="18.6.0")
    keyed_by_host(histories)
    found = changes(project)
    assert {change["test"] for change in found} == set(TESTS)
    assert {(change["cause"], change["hosts"]) for change in found} == {("host", "runner-2")}
    assert {change["key"] for change in found} == {"wormhole_b0-n150-1x1"}
    assert [change["change"] for change in found] == [pytest.approx(0.05, abs=0.006)] * 6
    text = project.cli("trends").text
    assert "changed in that range as well: firmware 18.3.0 → 18.6.0" in text


def test_a_commit_is_told_once_where_each_host_has_a_key_of_its_own(
    histories: Histories, project: Project
) -> None:
    commits = histories.commits(30)
    for day, commit in enumerate(commits):
        always = (1.0, 1.3, 0.8)[day % 3]
        value = wobbled(10.0 * always * (1.06 if day >= 18 else 1.0), day)
        system = {"system": f"Linux {day % 3}"}  # differs, and does not change
        histories.record(commit, {TEST: value}, day=day, host=HOSTS[day % 3], environment=system)
    keyed_by_host(histories)
    (change,) = changes(project)
    assert (change["cause"], change["bad"]) == ("code", commits[18])
    assert change["after"] / change["before"] == pytest.approx(1.06, abs=0.004)
    text = project.cli("trends").text
    assert "changed in that range as well" not in text


@pytest.mark.parametrize(
    ("commits", "about", "cause", "causes"),
    [
        (24, {"runner": ("old-{}", "new-{}")}, "cannot tell",
         r"the code: after \w+ up to \w+, 1 commit; other hosts: old-0, old-1 → new-0, new-1"),
        (24, {"ttnn": ("0.81.1", "0.82.0")}, "cannot tell",
         r"the code: after .*; ttnn 0\.81\.1 → 0\.82\.0"),
        (1, {"system": ("Linux 5.15", "Linux 6.8")}, "environment",
         r"kernel Linux 5\.15 → Linux 6\.8"),
        (1, {}, "host", "the machine: no commit and nothing else .* changed"),
    ],
    ids=["other hosts", "software and a commit", "software", "nothing recorded"],
)  # fmt: skip
def test_what_changed_with_it_may_be_the_cause(
    histories: Histories, project: Project, commits: int, about: dict[str, tuple[str, str]],
    cause: str, causes: str,
) -> None:  # fmt: skip
    made = histories.commits(commits)
    for day in range(24):
        new = day >= 12
        value = wobbled(10.5 if new else 10.0, day)
        told = {name: versions[new].format(day % 2) for name, versions in about.items()}
        histories.record(made[day % commits], {TEST: value}, day=day, environment=told)
    (change,) = changes(project)
    assert change["cause"] == cause
    assert re.fullmatch(causes, change["causes"])
    assert (change["command"] is None) == (commits == 1)


def ops(matmul_ns: float) -> dict[str, object]:
    groups = tuple(
        OpGroup(Signature(name), 64, None, "", 1, total, total)
        for name, total in (("Conv", 4e6), ("Matmul", matmul_ns))
    )
    encoded: dict[str, object] = encode_groups(OpGroups("DEVICE KERNEL DURATION [ns]", groups))
    return encoded


def test_the_ops_that_moved_are_named(histories: Histories, project: Project) -> None:
    for day, commit in enumerate(histories.commits(20)):
        matmul_ns = 7e6 if day >= 12 else 6e6
        value = wobbled(4.0 + matmul_ns / 1e6, day)
        time = {"unit": "ns", "samples": [value * 1e6], "source": "device"}
        with edited(histories.record(commit, {TEST: value}, day=day, ops=ops(matmul_ns))) as read:
            read["tests"][TEST]["metrics"] = {"device_kernel_time": time}
    (change,) = changes(project)
    assert "Matmul" in change["by_op"]
    assert "Conv" not in change["by_op"]


def test_all_that_trends_may_tell(histories: Histories, project: Project) -> None:
    """A slow host, a slower test, one that is too short, and one that is no time."""
    fleet(histories)
    new = {"metrics": {"latency": {"unit": "ms", "samples": [3.0]}}}
    accurate = {"metrics": {"pcc": {"unit": "", "kind": "accuracy", "samples": [0.999]}}}
    for day, file in enumerate(histories.made):
        with edited(file) as read:
            if day >= 30:
                read["tests"][TESTS[3]]["metrics"]["latency"]["samples"][0] *= 1.08
            if day >= 45:
                read["tests"]["models/test_new.py::test_new"] = new
            read["tests"][TEST] = accurate
    ran = project.cli("trends")
    assert (ran.code, ran.errors) == (0, "")
    assert_golden("trends_table", ran.text)
