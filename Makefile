# Every target does its own set-up: a virtual environment in .venv and an editable install.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Of several processes each keeps to its core: threads of BLAS wait by spinning, which
# makes small products twenty times slower as soon as they share their cores.
ONE_THREAD := OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1

# `make LOCKED=1 test` installs the versions of dev.lock.
CONSTRAINT := $(if $(LOCKED),--constraint dev.lock)

.PHONY: serve demo test quick lowest newest lint format bench docs dist lock audit clean

demo: $(VENV)/product  ## Fit glyphs from a few labels, print a table, write a picture page
	$(BIN)/linkspread demo

serve: $(VENV)/product  ## Search and judge glyphs in a browser, at http://127.0.0.1:8000/
	$(BIN)/linkspread serve linkspread-glyphs --glyphs

test: $(VENV)/installed  ## Run every test
	$(ONE_THREAD) $(BIN)/python -m pytest src tests --numprocesses auto --dist loadfile

quick: $(VENV)/installed  ## Run the tests that take less than a minute together
	$(ONE_THREAD) $(BIN)/python -m pytest src tests -m "not slow" -q --numprocesses auto --dist loadfile

# Warnings are no errors here: newer versions of indirect dependencies give some.
lowest: $(VENV)-lowest/installed  ## Run the quick tests with the lowest versions declared
	$(ONE_THREAD) $(VENV)-lowest/bin/python -m pytest src tests -m "not slow" -q \
	  --numprocesses auto --dist loadfile -o filterwarnings=

newest: $(VENV)-newest/installed  ## Run the quick tests with the newest versions there are
	$(ONE_THREAD) $(VENV)-newest/bin/python -m pytest src tests -m "not slow" -q \
	  --numprocesses auto --dist loadfile -o filterwarnings=

lint: $(VENV)/installed  ## Check style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/installed  ## Rewrite the sources in house style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/installed  ## Measure time and memory; LINKSPREAD_DATA names the folder of data sets
	$(BIN)/python benchmarks/run.py

docs: $(VENV)/installed  ## Write the site to build/site; its figures are made by the examples
	$(ONE_THREAD) $(BIN)/python -m sphinx -W --keep-going -q docs build/site

dist: $(VENV)/installed  ## Write a source distribution and a wheel to dist
	$(BIN)/python -m build --no-isolation

lock: $(VENV)/installed  ## Write the newest versions that tests may use to dev.lock
	$(BIN)/uv pip compile pyproject.toml --extra dev --universal --python-version 3.11 --upgrade \
	  --no-header --no-annotate --no-emit-index-url --no-emit-find-links --quiet --output-file dev.lock

audit: $(VENV)/installed  ## Look up known vulnerabilities of the versions in dev.lock
	$(BIN)/pip-audit --requirement dev.lock --no-deps --disable-pip

clean:
	rm -rf $(VENV) $(VENV)-lowest $(VENV)-newest build dist .pytest_cache .mypy_cache .ruff_cache

# Some systems ship Python without ensurepip; the virtualenv package fills in.
$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "linkspread needs Python 3.11 or newer; try: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 2; }
	$(PYTHON) -m venv $(VENV) || { $(PYTHON) -m pip install --user virtualenv && $(PYTHON) -m virtualenv $(VENV); }

# What the product needs; tests, linters, torch and a database server come with `dev`.
$(VENV)/product: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[pictures,web]'
	@touch $@

$(VENV)/installed: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $(CONSTRAINT) --editable '.[dev]'
	@touch $@ $(VENV)/product

$(VENV)-lowest/installed: pyproject.toml
	$(PYTHON) -m venv --clear $(VENV)-lowest
	$(VENV)-lowest/bin/python -m pip install --quiet --disable-pip-version-check uv
	$(VENV)-lowest/bin/uv pip install --quiet --python $(VENV)-lowest/bin/python \
	  --resolution lowest-direct --editable '.[all]'
	$(VENV)-lowest/bin/uv pip install --quiet --python $(VENV)-lowest/bin/python \
	  httpx hypothesis numpydoc polars pytest pytest-xdist safetensors schemathesis
	@touch $@


$(VENV)-newest/installed: pyproject.toml
	$(PYTHON) -m venv --clear $(VENV)-newest
	$(VENV)-newest/bin/python -m pip install --quiet --disable-pip-version-check uv
	$(VENV)-newest/bin/uv pip install --quiet --python $(VENV)-newest/bin/python \
	  --resolution highest --editable '.[all]'
	$(VENV)-newest/bin/uv pip install --quiet --python $(VENV)-newest/bin/python \
	  httpx hypothesis numpydoc polars pytest pytest-xdist safetensors schemathesis
	@touch $@
