"""Checks the prose of all pages: words, sentences, budgets, the index, anchors, what is run."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT: Final = Path(__file__).parents[1]
#: Folders whose pages follow from the code, or list what it has.
REFERENCE: Final = ("docs/rules/", "docs/reference/")

MAX_WORDS_BY_HAND: Final = 40_000
MAX_WORDS_OF_REFERENCE: Final = 36_000
MAX_WORDS_OF_A_PAGE: Final = 2_200
MAX_WORDS: Final = {
    "docs/explanation/how-the-gate-decides.md": 1_400,
    "docs/reference/cli.md": 6_500,
}
MAX_WORDS_OF_A_RULE: Final = 350
MAX_LINES: Final = {"README.md": 95, "CHANGELOG.md": 100}

LONG_SENTENCE: Final = 25
MAX_SHARE_OF_LONG_SENTENCES: Final = 0.05
LONGEST_SENTENCE: Final = 40

#: Words that a reader has to translate, and what to write.
WORDS: Final = {
    r"told|tells": "report, show, print",
    r"nobody|somebody": "you, the author, or the passive",
    r"beside": "next to, with, compared with",
    r"of what|what is no|(?<!there )(?<!0 )is none": "a noun",
    r"those that|that of": "a noun",
    r"as a whole": "overall, all tests",
    r"in turns": "alternately",
    r"stands? in|even so": "is in, still",
}
BANNED: Final = re.compile("|".join(rf"\b(?:{words})\b" for words in WORDS), re.IGNORECASE)
#: A reader overrules a word: ``<!-- lint: beside -->`` on its page.
OVERRULED: Final = re.compile(r"<!-- lint: ([\w ]+) -->")

#: A block that is not run says why: ``<!-- not run: needs a board -->``.
CONSOLE: Final = re.compile(r"^ *```console\n", re.MULTILINE)
NOT_RUN: Final = re.compile(r"<!-- not run: \S.*-->\s*\Z")

FENCE: Final = re.compile(r"^( *)```.*?^\1```$", re.DOTALL | re.MULTILINE)
COMMENT: Final = re.compile(r"<!--.*?-->", re.DOTALL)
CODE: Final = re.compile(r"`[^`]+`")
QUOTED: Final = re.compile(r'"[^"\n]*"')
LINK: Final = re.compile(r"\[([^\]]*)\]\(([^)\s]*)\)")
SENTENCE: Final = re.compile(r"(?<=[.!?])\s+(?=[A-Z`(\d*])")
WORD: Final = re.compile(r"\w[\w'’./%+-]*")


def pages() -> list[Path]:
    """List every page of the project."""
    return sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def name_of(page: Path) -> str:
    """Return the path of a page, from the root."""
    return page.relative_to(ROOT).as_posix()


def prose(text: str) -> str:
    """Leave out blocks, comments and quoted text; code counts as a word, a link as its text."""
    for pattern in (FENCE, COMMENT):
        text = pattern.sub("\n", text)
    return QUOTED.sub("Q", LINK.sub(r"\1", CODE.sub("C", text)))


def paragraphs(text: str) -> Iterator[str]:
    """Yield paragraphs and items of lists; headings, tables and formulas are not sentences."""
    for block in re.split(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )", text):
        lines = [line for line in block.splitlines() if not re.match(r"\s*[|#]| {4}\S", line)]
        if joined := " ".join(line.strip() for line in lines).strip():
            yield joined


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a page."""
    for paragraph in paragraphs(prose(text)):
        yield from SENTENCE.split(paragraph)


def length_of(sentence: str) -> int:
    """Count the words of a sentence."""
    return len(WORD.findall(sentence))


def wrong_words(name: str, text: str) -> Iterator[str]:
    """Yield each word that a plainer one replaces."""
    allowed = {word.lower() for word in OVERRULED.findall(text)}
    for found in BANNED.findall(prose(text).replace("None", "")):
        if found.lower() not in allowed:
            plain = next(w for banned, w in WORDS.items() if re.fullmatch(banned, found, re.I))
            yield f"{name}: {found!r}: use {plain}"


def most_words(name: str) -> int:
    """Return the budget of a page; that of reference pages is their sum."""
    if name.startswith("docs/rules/TTP"):
        return MAX_WORDS_OF_A_RULE
    return MAX_WORDS.get(name, 10**6 if name.startswith(REFERENCE) else MAX_WORDS_OF_A_PAGE)


def wrong_lengths(texts: dict[str, str]) -> Iterator[str]:
    """Yield sentences that are too long, and pages and sums beyond their budgets."""
    lengths = []
    for name, text in texts.items():
        for sentence in sentences(text):
            lengths.append(length_of(sentence))
            if lengths[-1] > LONGEST_SENTENCE:
                yield f"{name}: a sentence of {lengths[-1]} words: {sentence[:60]} ..."
        words, most = len(text.split()), most_words(name)
        if words > most:
            yield f"{name}: {words} words, at most {most}"
        if text.count("\n") > MAX_LINES.get(name, text.count("\n")):
            yield f"{name}: {text.count(chr(10))} lines, at most {MAX_LINES[name]}"
    share = sum(length > LONG_SENTENCE for length in lengths) / len(lengths)
    if share > MAX_SHARE_OF_LONG_SENTENCES:
        limit = f"{LONG_SENTENCE} words, at most {MAX_SHARE_OF_LONG_SENTENCES:.0%}"
        yield f"{share:.1%} of {len(lengths)} sentences have more than {limit}"
    words_of = {name: len(text.split()) for name, text in texts.items()}
    for what, is_reference, most in (
        ("by hand", False, MAX_WORDS_BY_HAND),
        ("reference and rules", True, MAX_WORDS_OF_REFERENCE),
    ):
        words = sum(w for name, w in words_of.items() if name.startswith(REFERENCE) is is_reference)
        print(f"{what}: {words:,} words")
        if words > most:
            yield f"{what}: {words:,} words, at most {most:,}"


def anchors(text: str) -> set[str]:
    """Return the anchors of the headings of a page."""
    headings = re.findall(r"^#+ (.*)$", FENCE.sub("", text), re.MULTILINE)
    plain = (LINK.sub(r"\1", heading).replace("`", "").lower() for heading in headings)
    return {re.sub(r"[^\w\- ]", "", heading).replace(" ", "-") for heading in plain}


def wrong_anchors(texts: dict[str, str]) -> Iterator[str]:
    """Yield links to headings that are not there."""
    for name, text in texts.items():
        for _, target in LINK.findall(FENCE.sub("", text)):
            place, found, anchor = target.partition("#")
            page = (ROOT / name).parent / place if place else ROOT / name
            if not (found and page.suffix == ".md" and page.exists()):
                continue
            if anchor not in anchors(page.read_text(encoding="utf-8")):
                yield f"{name}: no heading for {target}"


def wrong_index(texts: dict[str, str]) -> Iterator[str]:
    """Yield pages that the index does not name, or names twice."""
    index = ROOT / "docs/index.md"
    named = [
        name_of((index.parent / target.partition("#")[0]).resolve())
        for _, target in LINK.findall(texts["docs/index.md"])
        if ":" not in target and "#" not in target
    ]
    listed = (name for name in texts if re.match(r"docs/(?!index\.md|rules/TTP)", name))
    for name in listed:
        if (times := named.count(name)) != 1:
            yield f"{name}: {times} times in docs/index.md, not once"


def not_run(texts: dict[str, str]) -> Iterator[str]:
    """Yield blocks of commands that no test runs, and that do not say why."""
    files = (*(ROOT / "tests/docs").glob("*.py"), ROOT / "tests/ttlang/page.py")
    tests = "".join(file.read_text(encoding="utf-8") for file in files)
    for name, text in texts.items():
        if name in tests or name.removeprefix("docs/") in tests:
            continue
        for block in CONSOLE.finditer(text):
            if not NOT_RUN.search(text[: block.start()].rpartition("```")[2].rstrip()):
                line = text.count("\n", 0, block.start()) + 1
                yield f"{name}:{line}: no test runs this block; say why: <!-- not run: ... -->"


def main() -> int:
    """Print what is wrong; return 1 if anything is."""
    texts = {name_of(page): page.read_text(encoding="utf-8") for page in pages()}
    problems = [
        *(problem for name, text in texts.items() for problem in wrong_words(name, text)),
        *wrong_lengths(texts),
        *wrong_anchors(texts),
        *wrong_index(texts),
        *not_run(texts),
    ]
    for problem in problems:
        print(problem, file=sys.stderr)
    print(f"prose: {len(problems)} problems" if problems else "prose: plain, in budget")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
