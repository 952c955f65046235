"""A browser for the tests of this folder, and what becomes of them without one."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

from pytest_ttnn_perf.history.page_html import page_html
from tests.browser import sample

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """Return what starts Chromium, with its arguments given."""
    program = shutil.which("chromium")
    if find_spec("playwright") is None or program is None:
        pytest.skip("Chromium or playwright is not installed; make test-real installs them")
    from playwright.sync_api import sync_playwright

    def start() -> Any:
        # Its sandbox is not for root; nothing foreign is opened here.
        return playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])

    with sync_playwright() as playwright:
        yield start


@pytest.fixture(scope="session")
def browser(chromium: Any) -> Iterator[Any]:
    started = chromium()
    yield started
    started.close()


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the pages."""
    folder = tmp_path_factory.mktemp("pages")
    (folder / "small.html").write_text(page_html(sample.small()), encoding="utf-8")
    alone = {**sample.small(), "tests": sample.small()["tests"][:1]}
    (folder / "alone.html").write_text(page_html(alone), encoding="utf-8")
    return folder


@dataclass
class Reader:
    """Somebody who opens pages, and notes all that a page should not do."""

    browser: Any
    files: Path
    complaints: list[str] = field(default_factory=list)
    contexts: list[Any] = field(default_factory=list)

    def open(
        self, name: str = "small", *, test: str = "", address: str = "", width: int = 1280,
        height: int = 800, **context: Any,
    ) -> Any:  # fmt: skip
        """Open a page, at a test or an address."""
        made = self.browser.new_context(viewport={"width": width, "height": height}, **context)
        self.contexts.append(made)
        page = made.new_page()
        page.set_default_timeout(15_000)
        page.on("console", lambda message: self.complaints.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        page.on("request", self._request)
        page.on("dialog", lambda dialog: self.complaints.append(f"dialog: {dialog.message}"))
        hash_ = f"#test={quote(test, safe='')}" if test else address
        page.goto(f"file://{self.files}/{name}.html{hash_}")
        return page

    def _request(self, request: Any) -> None:
        # Images in the page itself are no request; neither is the page.
        if not request.url.startswith(("data:", f"file://{self.files}/")):
            self.complaints.append(f"request: {request.url}")


@pytest.fixture
def reader(browser: Any, files: Path) -> Iterator[Reader]:
    """Return a reader; the test fails if a page complained, or asked anybody for anything."""
    found = Reader(browser, files)
    yield found
    for context in found.contexts:
        context.close()
    assert not found.complaints
