# Every target sets itself up: the environment is made when pyproject.toml changes.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
# The package and what it needs, enough for the demo; tests and checks come on top.
INSTALLED := $(VENV)/.installed

.PHONY: demo test test-all test-workers test-plugins test-real test-ttnn test-smoke test-matrix check docs benchmarks gate-quality clean
.DEFAULT_GOAL := test

# Tests start hundreds of processes, which would compile the same modules over and over.
export PYTHONDONTWRITEBYTECODE :=

# Each environment would take longer to get a pip of its own than to use that of another.
PIP := .pip/bin/python -m pip --disable-pip-version-check

.pip/.ready:
	$(PYTHON) -m venv .pip
	$(PIP) install --upgrade 'pip>=25.1'
	@touch $@

$(INSTALLED): pyproject.toml | .pip/.ready
	$(PYTHON) -m venv --without-pip $(VENV)
	$(PIP) --python $(BIN)/python install --editable .
	@touch $@

$(READY): $(INSTALLED)
	$(PIP) --python $(BIN)/python install --group test --group check
	@touch $@

demo: $(INSTALLED)  ## the whole way once, on any machine: record, gate, catch a slowed model
	@$(BIN)/python examples/demo.py

test: $(READY)  ## what a change must pass, on this Python, in minutes
	$(BIN)/python -m pytest -n auto --dist worksteal

# What an author of tests relies on, whichever way they run. Other tests say themselves that they need workers.
BOTH_WAYS := findings nothing_passes_silently outcomes printed pytest_features session

test-workers: $(READY)  ## what holds in one process, with every test in a worker process
	TTNN_PERF_TEST_ISOLATE=process $(BIN)/python -m pytest -n auto --dist worksteal \
		$(BOTH_WAYS:%=tests/behaviour/test_%.py)

test-all: test-workers test-plugins test-real test-ttnn test-matrix  ## the long sweeps too, every page, every Python, new examples
	$(BIN)/python -m pytest -n auto --dist worksteal -m ""
	$(BIN)/python -m pytest -n auto --dist worksteal tests/properties --hypothesis-profile=search

.plugins/.ready: pyproject.toml | .pip/.ready
	$(PYTHON) -m venv --without-pip .plugins
	$(PIP) --python .plugins/bin/python install --editable . --group test --group plugins
	@touch $@

test-plugins: .plugins/.ready  ## beside the plugins that other projects use, in an environment of its own
	.plugins/bin/python -m pytest -p no:randomly -p no:sugar -n auto --dist worksteal \
		tests/behaviour/test_other_plugins.py

.real/.ready: pyproject.toml | .pip/.ready
	$(PYTHON) -m venv --without-pip .real
	$(PIP) --python .real/bin/python install --editable . --group test --group real
	@touch $@

# Chromium and PostgreSQL's server are packages of the system. The driver of the browser leaves a loop
# running, beside which the client cannot start one: each has a process.
REAL ?= tests/mcp/test_official_client.py tests/measure/test_tensors.py tests/ttlang tests/postgresql tests/browser

test-real: export TTNN_PERF_TEST_REAL := required
test-real: .real/.ready  ## with the real parts, in an environment of their own
	$(if $(filter-out tests/browser%,$(REAL)),.real/bin/python -m pytest -p no:anyio $(filter-out tests/browser%,$(REAL)))
	$(if $(filter tests/browser%,$(REAL)),.real/bin/python -m pytest -p no:anyio $(filter tests/browser%,$(REAL)))

.ttnn/.ready: pyproject.toml
	$(PYTHON) -m tests.ttnn.environments install
	@touch $@

test-ttnn: .ttnn/.ready  ## with TTNN itself on its mock devices, in environments of their own
	$(PYTHON) -m tests.ttnn.environments test

check: $(READY)  ## lint, format, types, documentation
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/lint-imports --no-cache
	$(BIN)/mypy
	$(BIN)/mypy examples
	$(BIN)/python docs/generate.py --check
	$(BIN)/python docs/lint.py

docs: $(READY)  ## write the generated pages
	$(BIN)/python docs/generate.py

test-smoke: | .pip/.ready  ## the wheel, on the oldest and the newest Python, a part of the tests
	$(PYTHON) -m tests.matrix --smoke --allow-missing

test-matrix:  ## the wheel, on every supported Python with the oldest and the newest pytest
	$(PYTHON) -m tests.matrix

benchmarks: $(READY)  ## side by side with pytest-benchmark, and the bars
	$(PIP) --python $(BIN)/python install --group benchmark
	@missed=; for name in gate measure startup unmeasured pcc capture checklist ab ab_rates bisect_rates history_database optimization_loop; do \
		$(BIN)/python benchmarks/$$name.py || missed="$$missed $$name"; \
	done; test -z "$$missed" || { echo "missed a bar:$$missed"; exit 1; }

gate-quality: $(READY)  ## how often the gate is wrong; writes the page
	$(BIN)/python benchmarks/gate_quality.py --out docs/explanation/gate-quality.md

clean:
	rm -rf $(VENV) .pip .matrix .plugins .real .ttnn dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .ttnn_perf
