"""``check_layers``: the worst layer is gated, and the first that goes wrong is named."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf.measure.pcc import Agreement, Layer, first_below, worst_layer
from tests.behaviour.model import counts_of, entry_of, failure_of

if TYPE_CHECKING:
    from tests.harness.project import Project

#: The PCC of ``off`` with what is expected is 0.8, that of ``worse`` 0.6.
HEAD = """
    import numpy as np
    import pytest

    up = np.array([1.0, -1.0, 0.0, 0.0])
    off = np.array([0.8, -0.8, 0.6, -0.6])
    worse = np.array([0.6, -0.6, 0.8, -0.8])
    holed = np.array([1.0, np.nan, 0.0, 0.0])
    MODEL = {"stem": (up, up), "layer1": (up, 2 * up), "layer2": (up, off), "head": (up, worse)}

    def test_model(ttnn_perf):
"""
NAMED = "layer1 1, layer2 0.8 <- first below 0.99, head 0.6; 2 of 4 layers below"


def write(project: Project, *lines: str) -> None:
    """Write a test of these lines."""
    project.write(test_model=HEAD + "".join(f"        {line}\n" for line in lines))


def test_the_first_bad_layer_is_named_and_the_worst_decides(project: Project) -> None:
    write(project, "assert list(ttnn_perf.check_layers(MODEL)) == list(MODEL)")

    ran = project.pytest("--ttnn-perf", "--ttnn-perf-missing=ignore")

    assert failure_of(ran).splitlines()[0] == (f"BELOW_LIMIT: pcc 0.6, limit 0.99 ({NAMED})")
    entry = entry_of(project)
    recorded = {name: (m["samples"], m.get("gated", True)) for name, m in entry["metrics"].items()}
    assert {name: gated for name, (_, gated) in recorded.items()} == {
        "pcc.stem": False, "pcc.layer1": False, "pcc.layer2": False, "pcc.head": False, "pcc": True,
    }  # fmt: skip
    assert recorded["pcc"][0] == recorded["pcc.head"][0] == pytest.approx([0.6])
    assert list(entry["verdicts"]) == ["pcc"]


FORMS = "a mapping from names to (expected, actual), or (name, expected, actual) each"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("{}", "check_layers was given no layer: nothing was compared"),
        ("[('a', up, up), ('a', up, up)]",
         "check_layers was given a twice; each layer has a name of its own"),
        ("{'a': up}", f"check_layers takes {FORMS}: layer 0 is not"),
        ("[('a', up, up), ('b', up)]", f"check_layers takes {FORMS}: layer 1 is not"),
        ("7", f"check_layers takes {FORMS}: found int"),
        ("MODEL, at_least={'neck': 0.9}",
         "at_least names neck, which is not one of the layers (stem, layer1, layer2, head)"),
        ("MODEL, at_least=float('nan')", "at_least: expected a finite number, found nan"),
    ],
)  # fmt: skip
def test_mistakes_are_named(project: Project, arguments: str, message: str) -> None:
    write(project, f"ttnn_perf.check_layers({arguments})")

    project.pytest("--ttnn-perf")

    assert entry_of(project)["raised"] == f"UsageError: {message}"


def layer(name: str, pcc: float, at_least: float = 0.99) -> Layer:
    return Layer(name, Agreement(pcc), at_least)


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        (("a", "b", "c"), "a 1, b 0.5 <- first below 0.99, c 1; 1 of 3 layers below"),
        (("a" * 60, "b" * 10, "c"), f"{'b' * 10} 0.5 <- first below 0.99; 1 of 3 layers below"),
    ],
)  # fmt: skip
def test_the_sentence_fits_into_a_line(names: tuple[str, str, str], sentence: str) -> None:
    layers = [layer(name, pcc) for name, pcc in zip(names, (1.0, 0.5, 1.0), strict=True)]

    assert first_below(layers) == sentence
    assert len(sentence) <= 80
    assert worst_layer(layers) is layers[1]


@pytest.mark.parametrize(
    "limits", ["0.59", "{'head': 0.5, 'layer2': 0.7}"], ids=["one for all", "by name"]
)
def test_layers_above_their_limits_pass(project: Project, limits: str) -> None:
    write(
        project,
        f"found = ttnn_perf.check_layers(MODEL, at_least={limits})",
        "assert found == pytest.approx({'stem': 1, 'layer1': 1, 'layer2': 0.8, 'head': 0.6})",
    )

    assert counts_of(project.pytest()) == "1 passed"
    ran = project.pytest("--ttnn-perf-update=new", "--ttnn-perf-ignore=TTP906")
    assert counts_of(ran) == "1 passed", ran.text
    assert set(project.stored()["test_model"]["metrics"]) == {"pcc"}
    assert counts_of(project.pytest("--ttnn-perf", "--ttnn-perf-ignore=TTP906")) == "1 passed"
