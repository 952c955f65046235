"""A page as a document: nothing in it is markup that we did not write. Charts: tests/browser."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ttnn_perf.history.page_html import main_metric, page_html, page_json
from tests.browser.sample import HOSTILE, small


class Tags(HTMLParser):
    """Notes the tags and the texts of a document, as a browser without scripts sees them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.attributes: set[str] = set()
        self.texts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


@pytest.fixture(scope="module")
def document() -> str:
    return page_html(small())


def data_of(document: str) -> Any:
    found = re.findall(r'<script type="application/json" id="data">(.*?)</script>', document)
    assert len(found) == 1
    return json.loads(found[0])


def test_texts_of_others_are_no_markup() -> None:
    # In the head; tables and charts are made of data by scripts.
    document = page_html({**small(), "headline": HOSTILE[0], "notes": [HOSTILE[3], HOSTILE[4]]})
    tags = Tags(document)
    assert tags.found.count("script") == 2
    assert not {"img", "iframe", "object", "b2"} & set(tags.found)
    assert not [name for name in tags.attributes if name.startswith("on") or name == "style"]
    assert HOSTILE[0] in tags.texts
    assert HOSTILE[4] in tags.texts  # neither entities nor templates
    assert "\u202e" not in document
    assert "\x00" not in document


def test_the_policy_allows_our_style_and_our_script_and_nothing_else(document: str) -> None:
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', document)
    rules = dict(rule.strip().split(" ", 1) for rule in policy.replace("&#39;", "'").split(";"))
    assert rules["default-src"] == "'none'"
    for tag, rule in (("style", "style-src"), ("script", "script-src")):
        (text,) = re.findall(f"<{tag}>(.*?)</{tag}>", document, flags=re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert rules[rule] == f"'sha256-{digest}'"
    assert not re.findall(r"""(?:src|href)=["']?(?!data:)\w*:?//""", document)


@given(st.text())
def test_any_text_arrives_as_it_is_seen(text: str) -> None:
    written = page_json({"title": text, "tests": []})
    assert not set("<>&\u2028\u2029") & set(written)
    told = json.loads(written)["page"]["title"]
    if text.isprintable():
        assert told == text
    assert all(line.isprintable() for line in told.split("\n"))


def test_what_is_no_number_is_none() -> None:
    (test, *_) = small()["tests"]
    (metric, *_) = test["metrics"]
    history = {
        "runs": [0, 2],
        "values": [1.5, float("nan")],
        "outcomes": ["", "WITHIN"],
        "marks": ["stored", ""],
    }
    page = {"tests": [{**test, "metrics": [{**metric, "history": history}]}]}
    (told,) = json.loads(page_json(page))["page"]["tests"][0]["metrics"]
    assert told["history"]["values"] == [1.5, None]


def test_the_worst_gated_metric_stands_for_a_test(document: str) -> None:
    (test, *_) = small()["tests"]
    place = main_metric(test)
    assert place is not None
    assert test["metrics"][place]["name"] == "wall_time"
    assert data_of(document)["page"]["tests"][0]["main"] == place
    assert main_metric({"metrics": []}) is None
