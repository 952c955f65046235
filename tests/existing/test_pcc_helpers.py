"""PCC helpers are recorded with their limits; what they pass over is found by name."""

from __future__ import annotations

from textwrap import dedent
from typing import TYPE_CHECKING, Any

import pytest

from tests.behaviour.model import counts_of, entry_of
from tests.existing.idioms import write_project

if TYPE_CHECKING:
    from tests.harness.project import Project

HEAD = """\
import numpy as np
import pytest

random = np.random.default_rng(7)
GOLDEN = random.standard_normal((4, 64)).astype(np.float32)
OUTPUT = GOLDEN + random.standard_normal((4, 64)).astype(np.float32) / 100
"""


def write(project: Project, source: str) -> None:
    write_project(project, HEAD + dedent(source))


def accuracies(project: Project, file: str = "test_model") -> dict[str, Any]:
    metrics = entry_of(project, f"{file}.py::test_model")["metrics"]
    return {name: metric for name, metric in metrics.items() if name.startswith("pcc")}


#: How a test comes by a helper, before or after observing begins, and under which name.
IMPORTS = {
    "by name": """
        from models.common.utility_functions import comp_pcc

        @pytest.mark.ttnn_perf
        def test_model():
            passing, pcc = comp_pcc(GOLDEN, OUTPUT, 0.97)
            assert passing
    """,
    "under another name": """
        from models.common.utility_functions import comp_pcc as close_enough

        CHECKS = {"pcc": close_enough}

        @pytest.mark.ttnn_perf
        def test_model():
            assert CHECKS["pcc"](GOLDEN, OUTPUT, pcc=0.97)[0]
    """,
    "in the body": """
        @pytest.mark.ttnn_perf
        def test_model():
            from models.common.utility_functions import comp_pcc

            assert comp_pcc(GOLDEN, OUTPUT, 0.97)[0]
    """,
    "through another helper": """
        from models.common.utils_for_testing import assert_with_pcc

        @pytest.mark.ttnn_perf
        def test_model():
            assert_with_pcc(GOLDEN, OUTPUT, 0.97)
    """,
    "one of the test's own": """
        def assert_with_pcc(expected, actual, pcc_threshold=0.97):
            told = np.corrcoef(expected.reshape(-1), actual.reshape(-1))[0, 1]
            assert told >= pcc_threshold, f"PCC {told}"

        @pytest.mark.ttnn_perf
        def test_model():
            assert_with_pcc(GOLDEN, OUTPUT)
    """,
}


LOOPS = """
    from models.common.utility_functions import comp_pcc

    @pytest.mark.ttnn_perf
    def test_model():
        for scale in (1, 2, 3):
            assert comp_pcc(GOLDEN, OUTPUT * scale, 0.98)[0]
        assert comp_pcc(GOLDEN, OUTPUT)[0]
"""
#: A limit that a test goes on after is not its limit.
GOES_ON = """
    from models.common.utility_functions import comp_pcc

    @pytest.mark.ttnn_perf
    def test_model():
        passing, pcc = comp_pcc(GOLDEN, random.standard_normal((4, 64)) + GOLDEN)
        assert pcc > 0.5
"""


def test_pcc_is_recorded_with_the_limit_of_the_helper(project: Project) -> None:
    files = {f"test_{at}": HEAD + dedent(source) for at, source in enumerate(IMPORTS.values())}
    write_project(project, HEAD + dedent(LOOPS), test_goes_on=HEAD + dedent(GOES_ON), **files)

    ran = project.pytest("--ttnn-perf-update=new")

    assert counts_of(ran) == f"{len(IMPORTS) + 2} passed", ran.text
    for file, how in zip(files, IMPORTS, strict=True):
        (found,) = accuracies(project, file).values()
        assert found["samples"] == [pytest.approx(0.99995, abs=3e-5)], how
        assert (found["at_least"], found["kind"]) == (0.97, "accuracy"), how
    # Lines have names in the order of their calls, and loops have samples.
    looped = accuracies(project)
    assert {name: (len(m["samples"]), m["at_least"]) for name, m in looped.items()} == {
        "pcc": (3, 0.98),
        "pcc_2": (1, 0.99),
    }
    assert accuracies(project, "test_goes_on")["pcc"]["at_least"] == -1


#: What a helper lets pass, and what is found of it.
PASSED_OVER = {
    "NaN": (
        "OUTPUT[1, 2] = np.nan",
        "GOLDEN, OUTPUT, 0.9",
        "actual holds 1 NaN and 0 infinite of 256 values where the other side does not, "
        "the first at [1, 2]",
    ),
    "infinity": (
        "OUTPUT[0, 0] = -np.inf",
        "GOLDEN, OUTPUT, 0.9",
        "actual holds 0 NaN and 1 infinite of 256 values where the other side does not, "
        "the first at [0, 0]",
    ),
    "all NaN": (
        "GOLDEN[:], OUTPUT[:] = np.nan, np.nan",
        "GOLDEN, OUTPUT",
        "none of the 256 values of either side is finite: nothing was compared",
    ),
    "empty": (
        "",
        "GOLDEN[:0], OUTPUT[:0]",
        "both sides have shape (0, 64): nothing was compared",
    ),
    "stretched": (
        "GOLDEN[:] = 2",
        "GOLDEN, np.full((1, 1), 2, np.float32)",
        "expected has shape (4, 64) and actual has shape (1, 1): one was stretched to the other",
    ),
}


ALIKE = {
    "same mask": "GOLDEN[0, :9] = OUTPUT[0, :9] = -np.inf",
    "same NaN": "GOLDEN[0, :9] = OUTPUT[0, :9] = np.nan",
    "other shape": "global OUTPUT; OUTPUT = OUTPUT.reshape(1, 4, 64)",
    "nearly constant": "GOLDEN[:], OUTPUT[:] = 1.0, 1.00001",
}


COMPARING = """
from models.common.utility_functions import comp_pcc

@pytest.mark.ttnn_perf
def test_model():
    {before}
    assert comp_pcc({arguments})[0]
"""


def test_what_a_helper_passes_over_is_found_and_what_tests_rely_on_is_not(
    project: Project,
) -> None:
    passed_over = [
        COMPARING.format(before=before, arguments=arguments)
        for before, arguments, _ in PASSED_OVER.values()
    ]
    alike = [COMPARING.format(before=each, arguments="GOLDEN, OUTPUT") for each in ALIKE.values()]
    sources = {f"test_{at}": HEAD + text for at, text in enumerate(passed_over + alike)}
    write_project(project, "", **sources)
    assert counts_of(project.pytest("-p", "no:ttnn_perf")) == f"{len(sources)} passed"

    ran = project.pytest("--ttnn-perf-update=new", "--ttnn-perf-json=run.json")

    assert counts_of(ran) == f"{len(passed_over)} failed, {len(alike)} passed"
    found = {
        file: [
            finding["reason"]
            for finding in entry_of(project, f"{file}.py::test_model")["findings"]
            if (finding["code"], finding["outcome"]) == ("TTP908", "FOUND")
        ]
        for file in sources
    }
    for reasons, (_, _, sentence) in zip(found.values(), PASSED_OVER.values(), strict=False):
        (reason,) = reasons
        assert reason.startswith("pcc: comp_pcc says ")
        assert reason.endswith(f": {sentence}")
    assert [*found.values()][len(passed_over) :] == [[]] * len(alike)


@pytest.mark.parametrize(("elements", "count"), [(255, "1 passed"), (256, "1 failed")])
def test_large_outputs_are_left_to_the_helper(project: Project, elements: int, count: str) -> None:
    write(
        project,
        """
        from models.common.utility_functions import comp_pcc

        @pytest.mark.ttnn_perf
        def test_model():
            OUTPUT[0, 0] = np.nan
            assert comp_pcc(GOLDEN, OUTPUT, 0.9)[0]
        """,
    )
    config = project.path / "ttnn_perf.toml"
    config.write_text(config.read_text() + f"observe_pcc_elements = {elements}\n")

    assert counts_of(project.pytest("--ttnn-perf-update=new")) == count


def test_layers_that_tt_cnn_verifies_are_told_apart(project: Project) -> None:
    source = """
        from models.common.utils_for_testing import assert_with_pcc

        def verify_conv2d_from_config(configuration, device, pcc_threshold=0.999):
            assert_with_pcc(GOLDEN, GOLDEN + (OUTPUT - GOLDEN) * configuration, pcc_threshold)

        @pytest.mark.ttnn_perf
        def test_model():
            verify_conv2d_from_config(1, None)
            verify_conv2d_from_config(2, None, pcc_threshold=0.99)
    """
    write(project, source)

    assert counts_of(project.pytest("--ttnn-perf-update=new")) == "1 passed"
    limits = {name: pcc["at_least"] for name, pcc in accuracies(project).items()}
    assert limits == {"pcc": 0.999, "pcc_2": 0.99}
