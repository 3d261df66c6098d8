# One command each for set-up, check and test, the same at home and in CI.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SET_UP := $(VENV)/.set-up

.PHONY: quickstart dev test check soak bench lock clean

quickstart: $(SET_UP)          ## sample conversations -> pipeline -> run -> memories, printed
	$(BIN)/memory-pipelines quickstart

dev: $(SET_UP)                 ## Dagster UI, daemon and code location on this project
	$(BIN)/memory-pipelines dev

test: $(SET_UP)                ## the suite, under ten minutes on two cores
	$(BIN)/python -m pytest

soak: $(SET_UP)                ## what takes longer, by hand
	$(BIN)/python -m pytest -m soak tests/soak --dist load

check: $(SET_UP)               ## lint, format and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright

bench: $(SET_UP) .bench/.set-up  ## our kernels beside others' in one run, some minutes
	$(BIN)/python bench/kernel.py --peers .bench/bin/python

# What ours are compared with has an environment of its own and no part in requirements.lock.
.bench/.set-up: bench/requirements.lock $(VENV)/bin/uv
	$(BIN)/uv venv -q --clear --python $(BIN)/python .bench
	$(BIN)/uv pip install -q --python .bench/bin/python --compile-bytecode -r bench/requirements.lock
	touch $@

lock: $(VENV)/bin/uv           ## refresh requirements.lock, and that of bench/
	$(BIN)/uv pip compile --universal --python-version 3.11 --no-emit-index-url --no-header -q \
	    pyproject.toml --extra frames --group dev -o requirements.lock
	$(BIN)/uv pip compile --universal --python-version 3.11 --no-emit-index-url --no-header -q \
	    bench/requirements.in -o bench/requirements.lock

$(VENV)/bin/uv:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "memory-pipelines needs Python 3.11 or newer: make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --disable-pip-version-check 'uv>=0.9,<1'

# Byte code is compiled once here: it halves the start of every run.
$(SET_UP): requirements.lock pyproject.toml $(VENV)/bin/uv
	$(BIN)/uv pip install -q --python $(BIN)/python --compile-bytecode -r requirements.lock
	$(BIN)/uv pip install -q --python $(BIN)/python --no-deps --editable .
	touch $@

clean:
	rm -rf $(VENV) .bench .memory-pipelines .pytest_cache .ruff_cache
