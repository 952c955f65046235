"""How a page looks: charts keep to their place, widths, contrast; and what it costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.browser.sample import REGRESSED

if TYPE_CHECKING:
    from tests.browser.conftest import Reader

CHARTS = {"history", "samples", "waterfall", "treemap", "roofline"}
#: Shapes that leave their chart, and labels that touch one another.
MISPLACED = """() => [...document.querySelectorAll("svg[data-chart]")].flatMap(plot => {
  const outer = plot.getBoundingClientRect();
  const outside = [...plot.querySelectorAll(":not(title)")].filter(shape => {
    const box = shape.getBoundingClientRect();
    return box.left < outer.left - 1 || box.right > outer.right + 1 ||
      box.top < outer.top - 1 || box.bottom > outer.bottom + 1;
  }).map(shape => `${plot.dataset.chart}: ${shape.tagName} ${shape.textContent} is outside`);
  const labels = [...plot.querySelectorAll("text")].filter(text => text.textContent);
  const boxes = labels.map(text => text.getBoundingClientRect());
  const touching = labels.flatMap((label, place) => labels.slice(0, place).filter((_, other) => {
    const [one, two] = [boxes[place], boxes[other]];
    const across = Math.min(one.right, two.right) - Math.max(one.left, two.left);
    const down = Math.min(one.bottom, two.bottom) - Math.max(one.top, two.top);
    return across > 1 && down > 4;  // boxes have room above and below the letters
  }).map(other => `${plot.dataset.chart}: ${label.textContent} touches ${other.textContent}`));
  // Labels of lines and of ops stand beside lines, not on them.
  const crossed = [...plot.querySelectorAll(".roof, .baseline, .limit, .target")].flatMap(line => {
    const [length, to] = [line.getTotalLength(), line.getScreenCTM()];
    const places = Array.from({ length: 60 }, (_, step) =>
      line.getPointAtLength(length * step / 59).matrixTransform(to));
    return labels.filter((_, label) => places.some(({ x, y }) =>
      x > boxes[label].left && x < boxes[label].right &&
      y > boxes[label].top + 2 && y < boxes[label].bottom - 2));
  }).map(label => `${plot.dataset.chart}: ${label.textContent} lies on a line`);
  return [...outside, ...touching, ...crossed];
})"""
#: Texts whose contrast with what is behind them is less than 4.5.
FAINT = """() => {
  const parts = colour => {
    const canvas = document.createElement("canvas").getContext("2d");
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const curve = part => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  const light = ([red, green, blue]) =>
    0.2126 * curve(red / 255) + 0.7152 * curve(green / 255) + 0.0722 * curve(blue / 255);
  const behind = element => {
    const colour = parts(getComputedStyle(element).backgroundColor);
    return colour[3] === 255 || !element.parentElement ? colour : behind(element.parentElement);
  };
  const hasText = node => node.nodeType === 3 && node.data.trim();
  const shown = element => [...element.childNodes].some(hasText) && element.checkVisibility();
  return [...document.querySelectorAll("body *")].filter(shown).flatMap(element => {
    const style = getComputedStyle(element);
    const tile = element.matches("text.on") ? element.parentElement.querySelector("rect") : null;
    const ground = light(tile ? parts(getComputedStyle(tile).fill) : behind(element));
    const ink = light(parts(element instanceof SVGElement ? style.fill : style.color));
    const ratio = (Math.max(ink, ground) + 0.05) / (Math.min(ink, ground) + 0.05);
    const told = `${ratio.toFixed(2)} ${element.tagName} ${element.textContent.slice(0, 40)}`;
    return ratio < 4.5 ? [told] : [];
  });
}"""
SIDEWAYS = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


def settle(page: Any) -> None:
    """Wait until the charts are drawn: two frames after they got their width."""
    page.evaluate(
        "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
    )


@pytest.mark.parametrize("width", [1280, 360])
def test_charts_are_drawn_inside_their_place(reader: Reader, width: int) -> None:
    page = reader.open(test=REGRESSED, width=width)
    page.locator("details > summary").evaluate_all("all => all.forEach(one => one.click())")
    settle(page)
    kinds = page.locator("svg[data-chart]:has(*)").evaluate_all(
        "all => all.map(p => p.dataset.chart)"
    )
    assert set(kinds) == CHARTS
    assert page.evaluate(MISPLACED) == []
    assert page.evaluate(SIDEWAYS) == 0
    described = page.locator("svg[data-chart]").evaluate_all("all => all.map(p => p.ariaLabel)")
    assert all(len(label) > 30 for label in described)

    page = reader.open(width=width)
    settle(page)
    assert page.evaluate(MISPLACED) == []
    assert page.evaluate(SIDEWAYS) == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_can_be_read(reader: Reader, scheme: str) -> None:
    page = reader.open(test=REGRESSED, color_scheme=scheme, reduced_motion="reduce")
    settle(page)
    assert page.evaluate(FAINT) == []
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (background == "rgb(18, 20, 23)") == (scheme == "dark")
