"""Commands and gated runs with a database of PostgreSQL; its password is nowhere to be found."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ttnn_perf.core.settings import HISTORY_VARIABLE
from tests.behaviour.model import write_latency
from tests.harness.histories import TEST, Histories, document, wobbled
from tests.postgresql.server import PASSWORD

if TYPE_CHECKING:
    import pytest

    from tests.harness.project import Project, Ran
    from tests.postgresql.server import Server

#: The password as it is, and as it stands in a URL.
SECRETS = (PASSWORD, "s3cret")


def assert_secret(project: Project, *outputs: Ran) -> None:
    """Check that no output and no file has the password in it."""
    texts = [text for ran in outputs for text in (ran.text, ran.errors)]
    files = [file.read_bytes() for file in project.path.rglob("*") if file.is_file()]
    for secret in SECRETS:
        assert not any(secret in text for text in texts)
        assert not any(secret.encode() in content for content in files)


def test_a_database_tells_what_files_tell_and_gives_them_back(project: Project, url: str) -> None:
    histories = Histories(project.path)
    for day, commit in enumerate(histories.commits(12)):
        value = wobbled(10.0 if day < 6 else 11.0, day)
        histories.record(
            commit, {TEST: value}, day=day, host=f"runner-{day % 2}",
            environment={"branch": "main"},
            verdicts={"unit": "ms", "outcome": "REGRESSED", "centre": 10.0, "change": 0.1},
        )  # fmt: skip
    sent = project.cli("history", "import", "--history", url)
    assert sent.text.startswith("sent 12 runs to postgresql+psycopg://ci:***@127.0.0.1:")
    for words in (("history",), ("history", TEST, "--last", "5"), ("trends",)):
        of_files = document(project, *words)
        of_database = document(project, *words, "--history", url)
        assert of_database.pop("notes")[:-1] == of_files.pop("notes")
        assert of_database == of_files
    exported = project.cli("history", "export", "--history", url, "-o", "out")
    assert exported.text == "wrote 12 run records to out"
    pruned = project.cli("history", "prune", "--keep", "1d", "--history", url)
    assert pruned.text == "removed 12 runs; kept 0 runs"
    assert_secret(project, sent, pruned, exported)


def test_gated_runs_keep_the_password_to_themselves(
    project: Project, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    write_latency(project, 10.0, 10.1)
    # Workers neither see it nor need it; what they see, tests may print.
    project.write(
        conftest="""
            import os, sys
            def pytest_sessionfinish():
                if os.environ.get("TTNN_PERF_ROLE") == "worker":
                    with open("seen.txt", "a") as file:
                        print(sys.argv, dict(os.environ), file=file)
        """
    )
    wrong = url.replace("s3cret", "s3cret-no-more")
    options = ["--ttnn-perf-isolate=process", "--ttnn-perf-update=new", "-p", "no:cacheprovider"]
    monkeypatch.setenv(HISTORY_VARIABLE, url)
    sent = project.pytest(*options)
    failed = project.pytest(*options, f"--ttnn-perf-history={wrong}")
    assert (sent.code, failed.code) == (0, 0)
    assert "history: sent to" in sent.text
    assert "password authentication failed" in failed.text
    assert "--history URL" in failed.text
    assert (project.path / "seen.txt").exists()
    assert_secret(project, sent, failed)


def test_failures_are_told_without_the_password(project: Project, server: Server, url: str) -> None:
    gone = url.replace(server.address, "127.0.0.1:1")
    nobody = url.rpartition("/")[0] + "/nothing"
    option = f"{url}?sslmode=maybe"
    outputs = []
    for each, said in (
        (gone, "onnection refused"),
        (nobody, 'database "nothing" does not exist'),
        (option, "sslmode"),
        (url, "it has no history yet"),
    ):
        ran = project.cli("history", "--history", each)
        assert (ran.code, ran.text) == (3, "")
        assert said in ran.errors
        assert len(ran.errors.splitlines()) == 1
        outputs.append(ran)
    outputs.append(project.cli("history", "--histroy", url))
    assert "unrecognized arguments" in outputs[-1].errors
    assert_secret(project, *outputs)
