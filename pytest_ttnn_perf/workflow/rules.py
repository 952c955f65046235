"""The rules themselves: a list, or the page of one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ttnn_perf._support.errors import UsageError
from pytest_ttnn_perf.checklist.registry import RULES
from pytest_ttnn_perf.report.rules import rule_listing, rules_listing

if TYPE_CHECKING:
    from pytest_ttnn_perf.report.rules import RulePage


def show_rules(code: str | None, *, shape: str) -> str:
    """Return all rules, or one of them with its page.

    Raises:
        UsageError: there is no such rule.
    """
    pages = rule_pages()
    if code is None:
        return rules_listing(pages).text(shape)
    for page in pages:
        if code.upper() in {page.code, page.name.upper()}:
            return rule_listing(page).text(shape)
    message = f"no rule is called {code!r}; `ttnn-perf rules` lists them"
    raise UsageError(message)


def rule_pages() -> tuple[RulePage, ...]:
    """Return what is known of every rule."""
    from pytest_ttnn_perf.report.rules import LimitRow, RulePage

    return tuple(
        RulePage(
            kind.code,
            kind.name,
            kind.severity,
            kind().step,
            kind.page(),
            tuple(
                LimitRow(
                    f.name, float(getattr(kind(), f.name)), f.metadata["unit"], f.metadata["source"]
                )
                for f in kind().limits()
            ),
        )
        for kind in RULES
    )
