"""A session in workers looks like an ordinary one: everything that tests can do, told the same."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.golden.sessions import run_both

if TYPE_CHECKING:
    from tests.harness.project import Project

OUTCOMES = """
    import logging
    import os
    import sys
    import warnings
    from pathlib import Path

    import pytest

    class OwnWarning(UserWarning):
        pass

    @pytest.fixture
    def broken():
        raise ValueError("no device")

    @pytest.fixture
    def untidy():
        print("opened")
        yield
        print("closing")
        raise RuntimeError("left open")

    def test_passing():
        print("all is well")

    def test_failing(tmp_path):
        print("to stdout")
        print("to stderr", file=sys.stderr)
        os.write(1, b"to the descriptor\\n")
        logging.getLogger("model").warning("logged")
        assert [1, 2, 3] == [1, 2, 4], tmp_path.name

    def test_without_setup(broken): pass
    def test_without_teardown(untidy): pass
    def test_failing_twice(untidy): assert not Path("nowhere")
    def test_unknown_fixture(no_such_fixture): pass
    def test_leaving(): raise SystemExit(3)
    def test_skipping(): pytest.skip("halfway")
    def test_xfailing(): pytest.xfail("halfway")

    @pytest.mark.skip(reason="no such board")
    def test_skipped(): pass

    @pytest.mark.skipif(True, reason="never here")
    def test_skipped_if(): pass

    @pytest.mark.xfail(reason="known", raises=AssertionError)
    def test_expected(): assert False

    @pytest.mark.xfail(reason="known")
    def test_unexpected(): pass

    @pytest.mark.xfail(reason="known", strict=True)
    def test_strictly_unexpected(): pass

    @pytest.mark.parametrize("times", range(3))
    def test_warning(times): warnings.warn("the same each time", OwnWarning)

    def test_warnings(recwarn):
        warnings.warn_explicit("deprecated", DeprecationWarning, "elsewhere.py", 7)

    def test_properties(record_property, caplog):
        record_property("path", Path("a") / "b")
        record_property("shape", (1, 2))
        record_property("pcc", 0.99)
        caplog.set_level(logging.INFO)
        logging.info("kept")
        assert caplog.messages == ["kept"]
        warnings.warn("over two\\nlines")

    class TestBoard:
        IDS = ["a/b", "a::b", "[x]", "two words", "größe→", "long" * 60]

        @pytest.mark.parametrize("value", IDS, ids=IDS)
        def test_id(self, value, ttnn_perf):
            ttnn_perf.record("latency", 10, unit="ms")
            assert value != "a::b"
"""
UNITTEST = """
    import unittest

    class Model(unittest.TestCase):
        @classmethod
        def setUpClass(cls): print("class is set up")
        def setUp(self): print("test is set up")
        def test_equal(self): self.assertEqual(1, 1)
        def test_unequal(self): self.assertEqual(1, 2)
        @unittest.skip("not now")
        def test_skipped(self): pass
        @unittest.expectedFailure
        def test_expected(self): self.fail("as expected")
"""
INI = """
[pytest]
markers = slow: takes long
disable_test_id_escaping_and_forfeit_all_rights_to_community_support = true
"""


@pytest.fixture
def everything(project: Project) -> Project:
    """A project of tests of all outcomes."""
    project.write(
        test_outcomes=OUTCOMES,
        test_unittest=UNITTEST,
        test_absent="import pytest\npytest.importorskip('no_such_module')",
        test_elsewhere="import pytest\npytest.skip('not here', allow_module_level=True)",
        test_import="import warnings\nwarnings.warn('at import')\ndef test_fine(): pass",
    )
    (project.path / "pytest.ini").write_text(INI)
    (project.path / "test_doc.txt").write_text(">>> 1 + 1\n3\n")
    return project


@pytest.mark.parametrize(
    "options",
    [
        ["-vv", "-rA", "--durations=0"],
        pytest.param(["--capture=tee-sys", "--tb=line"], marks=pytest.mark.long),
        pytest.param(
            ["--color=yes", "-rA", "-k", "not doc and not unknown_fixture"], marks=pytest.mark.long
        ),
        # Classic: the terminal does not know how far into its line a worker has printed.
        ["--log-cli-level=INFO", "--tb=no", "-o", "console_output_style=classic"],
        pytest.param(["-p", "no:terminal", "-q"], marks=pytest.mark.long),
        pytest.param(["--maxfail=3", "-v", "--no-header"], marks=pytest.mark.long),
        pytest.param(
            ["-k", "TestBoard or xfail", "--deselect=test_outcomes.py::TestBoard::test_id[[x]]"],
            marks=pytest.mark.long,
        ),
    ],
    ids=str,
)
def test_session_is_an_ordinary_one(everything: Project, options: list[str]) -> None:
    # What goes past sys.stdout is seen from outside only.
    uncaptured = any(option.startswith(("-s", "-vvs", "--capture")) for option in options)
    sessions = run_both(everything, *options, process=uncaptured)

    sessions.assert_equal()
    assert sessions.gated.errors == sessions.plain.errors


SUBTESTS = """
    import os
    import unittest

    import pytest

    class Model(unittest.TestCase):
        @pytest.mark.ttnn_perf
        def test_batches(self):
            for batch in range(3):
                with self.subTest(batch=batch):
                    self.assertNotEqual(batch, 1)
            {after}
"""


def test_subtests_are_counted_and_shown(project: Project) -> None:
    project.write(test_model=SUBTESTS.format(after="pass").replace("@pytest", "#"))

    # Captured, unittest's subtests print into the test's own output in an ordinary session.
    sessions = run_both(project, "-v", "-s")

    # A value becomes its text on its way, as with pytest-xdist.
    sessions.assert_equal(lambda text: re.sub(r"batch='(\d)'", r"batch=\1", text))
    assert sessions.gated.code == 1
