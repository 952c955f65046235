"""What tt-metal's errors mean, without their backtraces."""

from __future__ import annotations

import re
from typing import Final

#: ``TT_FATAL @ file:line: condition``, then ``info:`` and ``backtrace:`` on lines of their own.
_RAISED: Final = re.compile(r"TT_(?:FATAL|THROW|ASSERT) @ [^\n]*")
_INFO: Final = re.compile(r"\s*^info:[ \t]*$(.*?)(?=^backtrace:|\Z)", re.DOTALL | re.MULTILINE)
#: The user-mode driver ends its errors with where they were raised, and a numbered backtrace.
_DRIVER: Final = re.compile(r"\n\s*Location: [^\n]*\n.*\Z", re.DOTALL)


def cause_of(text: str) -> str:
    r"""Return the cause of an error in one line; a plain Python error is returned as it is.

    >>> cause_of("RuntimeError: TT_FATAL @ a.cpp:129: n > 0\ninfo:\nNo chips\nbacktrace:\n --- f()")
    'No chips'
    >>> cause_of("ImportError: libcudnn.so.9: cannot open shared object file")
    'ImportError: libcudnn.so.9: cannot open shared object file'
    """
    raised = _RAISED.search(text)
    if raised is None:
        return _DRIVER.sub("", text)
    info = _INFO.match(text, raised.end())
    # Without words of its own, the condition that failed is all there is.
    return _one_line(info[1] if info else "") or raised[0].strip()


def _one_line(text: str) -> str:
    return " ".join(text.split())
