"""What a reader does with a page: filters, search, links, keys, charts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

from tests.browser.sample import HOSTILE, IMPROVED, REGRESSED

if TYPE_CHECKING:
    from tests.browser.conftest import Reader

ROWS = "tr[data-place]"


def wait_until(page: Any, expression: str) -> None:
    """Wait for an expression to hold; playwright's own wait is refused by the page's policy."""
    for _ in range(600):
        if page.evaluate(expression):
            return
        page.wait_for_timeout(50)
    pytest.fail(f"never true: {expression}")


def ids(page: Any) -> list[str]:
    """Return the tests of the table that are in the document, from top to bottom."""
    found: list[str] = page.locator(f"{ROWS} a").evaluate_all("all => all.map(a => a.title)")
    return found


def test_failures_come_first_and_filters_search_and_sort_choose_tests(reader: Reader) -> None:
    page = reader.open()
    first = page.locator(".attention li").first
    assert REGRESSED in first.inner_text()
    assert "8.2 % slower, limit 3.0 %; confirmed by 2 of 2." in first.inner_text()
    assert first.locator("code").first.inner_text().startswith("ttnn-perf baseline accept")
    first.get_by_role("button", name="Copy").first.click()
    wait_until(
        page, "/Copied|Selected/.test(document.querySelector('.command button').textContent)"
    )

    assert len(ids(page)) == 12
    page.locator("[data-outcome=IMPROVED]").click()
    wait_until(page, "location.hash === '#outcome=IMPROVED'")
    wait_until(page, "document.querySelectorAll('tr[data-place]').length === 1")
    assert ids(page) == [IMPROVED]
    page.go_back()
    page.get_by_label("Search tests").fill("VIT steady n150")
    wait_until(page, "document.querySelectorAll('tr[data-place]').length === 1")
    assert ids(page) == ["models/tests/test_vit.py::test_steady"]
    assert page.locator(".tools [role=status]").inner_text() == "1 of 12 tests"
    page.get_by_label("Search tests").fill("no such test")
    page.get_by_role("link", name="Clear filters").click()
    wait_until(page, "document.querySelectorAll('tr[data-place]').length === 12")
    page.locator("[data-sort=change]").click()
    wait_until(page, "location.hash === '#sort=change'")
    wait_until(
        page, "document.querySelector('th:has([data-sort=change])').ariaSort === 'ascending'"
    )
    down = ids(page)
    assert down[0] == REGRESSED
    page.locator("[data-sort=change]").click()
    wait_until(page, "location.hash === '#sort=-change'")
    wait_until(
        page, "document.querySelector('th:has([data-sort=change])').ariaSort === 'descending'"
    )
    assert ids(page) == down[::-1]


def test_a_link_restores_what_was_looked_at_and_the_back_button_goes_back(reader: Reader) -> None:
    page = reader.open(address=f"#search=resnet&sort=test&test={quote(IMPROVED, safe='')}")
    assert page.locator("#test header h2").inner_text() == IMPROVED
    assert not page.locator("#overview").is_visible()
    page.get_by_text("← All tests").click()
    page.locator("#overview").wait_for(state="visible")
    assert ids(page) == [IMPROVED]
    assert page.get_by_label("Search tests").input_value() == "resnet"
    page.go_back()
    page.locator("#test header h2").wait_for()
    assert IMPROVED in page.title()
    # What is not there is no test.
    assert len(ids(reader.open(address="#test=gone&sort=nonsense&outcome="))) == 12


def test_tests_stand_under_their_files_and_columns_without_anything_are_left_out(
    reader: Reader,
) -> None:
    page = reader.open()
    heads = page.locator(".tests thead th").all_inner_texts()
    assert heads[:4] == ["Verdict ↓", "Test", "Hardware", "Metric"]
    assert heads[4:8] == ["Baseline", "Now", "Change", "Limit"]
    row = page.locator(ROWS).first.locator("td").all_inner_texts()
    assert row[1:4] == [REGRESSED.partition("::")[2], "n300", "wall_time"]
    assert row[4:8] == ["12.41 ms", "13.43 ms", "+8.2 %", "12.78 ms"]
    assert page.locator("td.file").first.inner_text() == REGRESSED.partition("::")[0]
    page.get_by_label("Search tests").fill("vit")
    wait_until(page, "document.querySelectorAll('tr[data-place]').length === 5")
    assert page.locator("td.file").count() == 1
    page.locator("[data-sort=change]").click()
    wait_until(page, "document.querySelectorAll('td.file').length === 0")
    assert "models/tests/test_vit.py::test_new" in page.locator(".tests").inner_text()


def test_a_single_test_opens_by_itself_and_a_code_leads_to_its_rule(reader: Reader) -> None:
    page = reader.open("alone")
    assert page.locator("#test header h2").inner_text() == REGRESSED
    assert not page.locator("#overview").is_visible()
    assert page.get_by_text("n300", exact=True).count() == 0
    assert page.locator(".finding code").all_inner_texts()[2:4] == ["TTP311", "sharded"]
    page.get_by_role("link", name="TTP311").click()
    page.get_by_role("heading", name="What to do").wait_for()
    assert page.locator(".rule code").inner_text() == "SHARDED"
    page.get_by_text("← Back").click()
    page.get_by_text("saves 712.4 of 9870.0 µs").wait_for()


def test_hostile_texts_are_texts(reader: Reader) -> None:
    for place, id_ in enumerate(HOSTILE):
        page = reader.open()
        page.locator(ROWS).filter(has_text=f"test_{'abcde'[place]}[").locator("a").click()
        told = page.locator("#test header h2").inner_text()
        assert told.isprintable()
        if place != 3:  # that one has what cannot be seen, and is spelt out
            assert told == id_
        else:
            assert told.endswith(r"[\u202egnp.exe\x1b[31m\x00\u2028]")
        assert page.locator("img, main script, main b > *").count() == 0
        assert page.evaluate("document.scripts.length") == 2
        assert page.title() == f"{told} · models: 2 of 12 tests failed (n300, 4f0c9d2)"
        assert page.locator("a[href^=javascript]").count() == 0


def test_a_run_is_told_under_the_pointer_and_with_keys(reader: Reader) -> None:
    page = reader.open(test=REGRESSED)
    plot = page.locator("[data-chart=history]").first
    plot.locator("polyline").wait_for()
    plot.focus()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    tip = page.locator("#tip")
    assert "REGRESSED" in tip.inner_text()
    plot.locator(".dot.better").first.hover()
    assert "IMPROVED" in tip.inner_text()
    page.mouse.move(1, 1)
    assert not tip.is_visible()


def test_the_parts_of_a_change_add_up(reader: Reader) -> None:
    page = reader.open(test=REGRESSED)
    bars = page.locator("[data-chart=waterfall] rect.fill")
    bars.first.wait_for()
    boxes = bars.evaluate_all(
        "all => all.map(r => [r.x.baseVal.value, r.x.baseVal.value + r.width.baseVal.value])"
    )
    level = boxes[0][1]
    for start, end in boxes[1:-1]:
        near = start if abs(start - level) < abs(end - level) else end
        assert near == pytest.approx(level, abs=0.01)
        level = end if near == start else start
    assert level == pytest.approx(boxes[-1][1], abs=0.01)
