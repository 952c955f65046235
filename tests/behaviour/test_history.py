"""``ttnn-perf history``: which runs are shown, in which order, and what is said of the others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.harness.git import git_in
from tests.harness.golden import assert_golden
from tests.harness.histories import TEST, Histories, document, edited, wobbled

if TYPE_CHECKING:
    from tests.harness.project import Project


def shown(project: Project, *words: str) -> list[str]:
    """Return the runs of the test that are shown, in order."""
    return [row["run"] for row in document(project, "history", TEST, *words)["runs"]]


def verdict(
    outcome: str, centre: float | None = None, change: float | None = None
) -> dict[str, Any]:
    return {"unit": "ms", "outcome": outcome, "centre": centre, "change": change}


@pytest.fixture
def lived(histories: Histories) -> Histories:
    """A test that got slower, was accepted, and was measured with changes and on a branch since."""
    first, second, third = histories.commits(3)
    histories.record(first, {TEST: 10.0}, day=0, verdicts=verdict("NO_BASELINE"),
                     written=["latency"])  # fmt: skip
    histories.record(second, {TEST: 10.1}, day=1, host="runner-2",
                     verdicts=verdict("WITHIN", 10.0, 0.01), written=["latency"])  # fmt: skip
    histories.record(third, {TEST: 11.0}, day=2, label="bfp8 weights", complete=False,
                     verdicts=verdict("REGRESSED", 10.0, 0.1), written=["latency"])  # fmt: skip
    histories.record(third, {TEST: 11.1, "models/test_llama.py::test_prefill": 90.0}, day=3,
                     verdicts=verdict("WITHIN", 11.0, 0.009))  # fmt: skip
    histories.record(third, {TEST: 5.0}, day=4, environment={"dirty": True})
    histories.git("checkout", "-q", "-b", "pull-request")
    (other,) = histories.commits(1)
    histories.record(other, {TEST: 7.0}, day=5)
    histories.git("checkout", "-q", "main")
    folder = histories.path / ".ttnn_perf" / "runs"
    (folder / "torn.json").write_text('{"format": 1, "te')
    (folder / "twice.json").write_bytes((folder / "run-000.json").read_bytes())
    return histories


def test_all_series_and_the_runs_of_a_test(lived: Histories, project: Project) -> None:
    del lived
    for name, words in (("history", ()), ("history_test", (TEST,))):
        ran = project.cli("history", *words)
        assert (ran.code, ran.errors) == (0, "")
        assert_golden(f"{name}_table", ran.text)


def test_runs_of_other_branches_and_dirty_ones_are_shown_if_asked_for(
    lived: Histories, project: Project
) -> None:
    del lived
    main = ["run-000", "run-001", "run-002", "run-003"]
    assert shown(project) == main
    assert shown(project, "--dirty") == [*main, "run-004"]
    assert shown(project, "--branch", "pull-request") == [*main, "run-005"]
    assert shown(project, "--all-branches") == [*main, "run-005"]
    assert shown(project, "--last", "2") == main[-2:]


def test_a_merged_pull_request_is_not_of_main(histories: Histories, project: Project) -> None:
    (base,) = histories.commits(1)
    histories.git("checkout", "-q", "-b", "topic")
    (topic,) = histories.commits(1)
    histories.git("checkout", "-q", "main")
    histories.git("merge", "-q", "--no-ff", "-m", "merge", "topic")
    merge = histories.git("rev-parse", "HEAD")
    for day, commit in enumerate((base, topic, merge)):
        histories.record(commit, {TEST: 10.0}, day=day)
    found = document(project, "history", TEST)
    assert [row["commit"] for row in found["runs"]] == [base, merge]
    (left_out,) = found["left_out"]
    assert left_out["runs"] == 1
    assert "of other branches or of pull requests" in left_out["why"]


def test_a_commit_that_git_does_not_know_is_left_out_and_can_be_asked_for(
    histories: Histories, project: Project
) -> None:
    first, second = histories.commits(2)
    histories.record(first, {TEST: 10.0}, day=0)
    histories.record("f" * 40, {TEST: 10.0}, day=1)
    histories.record(second, {TEST: 10.0}, day=2)
    found = project.cli("history", TEST)
    assert "left out: 1 run of commits that git does not know" in found.text
    assert shown(project) == ["run-000", "run-002"]
    with_all = document(project, "history", TEST, "--all-branches")
    assert [row["run"] for row in with_all["runs"]] == ["run-000", "run-001", "run-002"]
    assert with_all["notes"] == [
        "git does not know the commits of 1 of 3 runs: these are placed by the clocks of their "
        "hosts"
    ]


def test_without_git_runs_are_in_the_order_of_clocks_and_that_is_said(
    histories: Histories, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(project.path.parent))
    for day in (2, 0, 1):
        histories.record(f"{day}" * 40, {TEST: 10.0 + day}, day=day)
    found = document(project, "history", TEST)
    assert [row["value"] for row in found["runs"]] == [10.0, 11.0, 12.0]
    assert found["notes"] == [
        "no git repository here: records name the branch of a run; 3 of 3 name none, and are taken",
        "runs are in the order of the clocks of their hosts",
    ]
    ran = project.cli("history", "--branch", "main")
    assert (ran.code, ran.text) == (2, "")
    assert "is in no git repository: the branches of runs are unknown" in ran.errors
    # Unless their records do.
    for day, branch in enumerate(("main", "topic")):
        histories.record(f"{day}" * 40, {TEST: 9.0}, day=day, environment={"branch": branch})
    assert shown(project) == ["run-003"]
    assert shown(project, "--branch", "topic") == ["run-004"]


def test_runs_of_pull_requests_are_not_of_main_whatever_their_branch_is_called(
    histories: Histories, project: Project
) -> None:
    first, second = histories.commits(2)
    fork = {"branch": "main", "pull_request": "17"}
    histories.record(first, {TEST: 10.0}, day=0)
    histories.record("f" * 40, {TEST: 11.0}, day=1, environment={**fork, "parents": [first]})
    histories.record(second, {TEST: 12.0}, day=2, environment=fork)
    assert shown(project) == ["run-000"]
    assert shown(project, "--all-branches") == ["run-000", "run-001", "run-002"]


def test_where_git_does_not_know_a_commit_its_record_tells_the_branch(
    histories: Histories, project: Project
) -> None:
    """A clone of the last commit alone."""
    for place, commit in enumerate(histories.commits(5)):
        about = {"branch": "main"}
        histories.record(commit, {TEST: 10.0 + place}, day=place, environment=about)
    histories.record("a" * 40, {TEST: 1.0}, day=3, environment={"branch": "topic"})
    histories.record("b" * 40, {TEST: 2.0}, day=3)
    whole = [row["value"] for row in document(project, "history", TEST)["runs"]]
    source = histories.path.rename(histories.path.with_name("whole"))
    git_in(source.parent, "clone", "-q", "--depth=1", f"file://{source}", project.path)
    (source / ".ttnn_perf").rename(project.path / ".ttnn_perf")
    found = document(project, "history", TEST)
    assert [row["value"] for row in found["runs"]] == whole == [10.0, 11.0, 12.0, 13.0, 14.0]
    assert [(left["runs"], left["why"][:20]) for left in found["left_out"]] == [
        (1, "of commits that git "), (1, "of other branches or"),
    ]  # fmt: skip
    assert found["notes"] == [
        "git does not know the commits of 4 of 5 runs: these are placed by the clocks of their "
        "hosts"
    ]


def test_another_configuration_is_another_series(histories: Histories, project: Project) -> None:
    first, second = histories.commits(2)
    for day, (commit, batch) in enumerate(((first, 8), (second, 32))):
        with edited(histories.record(commit, {TEST: 10.0 * batch}, day=day)) as read:
            read["tests"][TEST]["facts"] = {"batch": batch}
    rows = document(project, "history", TEST)["runs"]
    assert [row["change"] for row in rows] == [None, None]
    assert "batch=32" in project.cli("history", TEST).text


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("history",), 2, "expected run records, found no folder"),
        (("trends", "--runs", "nowhere"), 2, "nowhere: expected a run record or a folder of them"),
        (("history", "--runs", "torn.json"), 3, "none of the 1 files is a run record"),
        (("history", "--branch", "a", "--all-branches"), 2, "not allowed with argument --branch"),
        (("trends", "--last", "0"), 2, "expected a whole number from 1"),
    ],
)
def test_what_cannot_be_meant(
    project: Project, words: tuple[str, ...], code: int, message: str
) -> None:
    (project.path / "torn.json").write_text('{"format": 1, "te')
    ran = project.cli(*words)
    assert (ran.code, ran.text) == (code, "")
    assert message in " ".join(ran.errors.split())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--branch", "nowhere"), "git knows no branch nowhere in"),
        (("--branch", "--output=x"), "expected one argument"),
        (("--metric", "nothing"), "no run has a metric 'nothing'; found: latency"),
        (("no_such_test",), "no_such_test names no test in the 2 runs that are looked at"),
    ],
)
def test_what_is_not_there(
    histories: Histories, project: Project, words: tuple[str, ...], message: str
) -> None:
    histories.nights([10.0, 10.0])
    database = ("--history", "sqlite:///perf.db")
    assert project.cli("history", "import", *database).code == 0
    for source in ((), database):
        ran = project.cli("history", *words, *source)
        assert ran.code == 2
        assert message in ran.errors


def test_names_that_others_chose_are_only_read(histories: Histories, project: Project) -> None:
    hostile = "a.py::test[\x1b[31m\n::error::x ##[error]y]"
    for day, commit in enumerate(histories.commits(20)):
        value = wobbled(10.6 if day >= 12 else 10.0, day)
        software = {"ttnn": "##[error]\x1b[2J" if day >= 12 else "0.81.1"}
        histories.record(commit, {hostile: value}, day=day, host="::error::\x1b[2J",
                         label="##[error]z\n", environment=software)  # fmt: skip
    histories.record("--output=/tmp/x", {hostile: 10.0}, day=20, host="##vso[x]")
    for words in ("history", "history a.py", "history a.py --all-branches", "trends"):
        for shape in ("table", "csv"):
            text = project.cli(*words.split(), "--format", shape).text
            assert "test[" in text
            assert "\x1b" not in text
            assert "##[" not in text
            assert not any(line.lstrip().startswith("::") for line in text.splitlines())
