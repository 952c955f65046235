"""What is said of code that is not of the side whose tests ran it."""

from __future__ import annotations

from pytest_ttnn_perf.experiments.ab import StrayCode, stray_text

COMMAND = ("ttnn-perf", "ab", "main", "-k", "a b")


def test_code_of_the_working_tree_names_both_ways_out() -> None:
    stray = StrayCode("model.layers", "../src/model/layers.py", "../src", 3, installed=False)
    assert stray_text(stray, side="main", command=COMMAND).splitlines() == [
        "tests of main ran code of the working tree: model.layers from ../src/model/layers.py and "
        "2 other modules",
        "  so it would be compared with itself: an editable install, or a path, points there",
        "  let each side find its own first: PYTHONPATH=../src ttnn-perf ab main -k 'a b'",
        "  or, if both are to use the same: ttnn-perf ab main -k 'a b' --same ../src/model",
    ]


def test_code_that_is_installed_is_that_of_neither() -> None:
    stray = StrayCode("model", "/env/site-packages/model/__init__.py", "lib", 1, installed=True)
    assert stray_text(stray, side="working tree", command=COMMAND).splitlines() == [
        "tests of the working tree ran code that is installed: model from "
        "/env/site-packages/model/__init__.py",
        "  so it would be compared with itself: what is installed comes first",
        "  let each side find its own first: PYTHONPATH=lib ttnn-perf ab main -k 'a b'",
    ]
