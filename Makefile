# Every target sets itself up: the environment is made when pyproject.toml changes.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

.PHONY: demo test test-matrix check docs benchmarks clean
.DEFAULT_GOAL := test

$(READY): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable . --group test --group check
	@touch $@

demo: $(READY)  ## the whole way once, on any machine: record, gate, catch a slowed model
	@$(BIN)/python examples/demo.py

test: $(READY)  ## all tests, on this Python
	$(BIN)/python -m pytest

check: $(READY)  ## lint, format, types, documentation
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/mypy examples
	$(BIN)/python docs/generate.py --check

docs: $(READY)  ## write the generated pages
	$(BIN)/python docs/generate.py

test-matrix:  ## the wheel, on every supported Python with the oldest and the newest pytest
	$(PYTHON) tests/matrix.py

benchmarks: $(READY)  ## side by side with pytest-benchmark, and the bars
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --group benchmark
	$(BIN)/python benchmarks/gate.py
	$(BIN)/python benchmarks/measure.py
	$(BIN)/python benchmarks/startup.py
	$(BIN)/python benchmarks/pcc.py

clean:
	rm -rf $(VENV) .matrix dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .ttnn_perf
