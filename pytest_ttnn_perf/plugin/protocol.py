"""What a worker and an orchestrator say to each other, in one process or in two."""

from __future__ import annotations

from typing import Final

#: The attribute of a report that carries the observation, as plain JSON: pytest's own
#: serialisation of reports keeps it.
ATTRIBUTE: Final = "ttnn_perf"
