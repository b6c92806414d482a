# Two commands do everything: `make demo` and `make test`. Both create .venv on first use.
# `make test` runs fixed-seed samples of long checks. `make check` runs their full size, and then the samples as on
# two other kinds of processors.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

.PHONY: demo test check lint types docs reports lock clean

demo: $(INSTALLED)
	$(BIN)/svmbench run experiment=quickstart
	$(BIN)/svmbench report study=quickstart

test: $(INSTALLED)
	$(BIN)/python -m pytest

check: $(INSTALLED)
	$(BIN)/python -m pytest --full
	$(BIN)/python -m tests.processors

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/numpydoc lint $$(find orchestrator solvers -name '*.py')

types: $(INSTALLED)
	$(BIN)/mypy

# The manual, into site/; a warning is an error. Its search needs a server: python -m http.server -d site
docs: $(INSTALLED)
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

# The reports of the published studies, and `numbers.json` and `README.md` of each, which are committed.
reports: $(INSTALLED)
	for study in results/published/*/; do \
		$(BIN)/svmbench report study=$$(basename $$study) paths.results=results/published || exit; \
	done
	$(BIN)/python -m tests.published

# Without pip's bytecode, which it makes on one core and also of the packages' own tests.
$(INSTALLED): requirements-dev.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "svmbench needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version 2>&1). Try: make $(MAKECMDGOALS) PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --require-hashes -r requirements-dev.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	$(BIN)/python -m compileall -q -j 0 -x '/(tests?|kubernetes\w*)/' $(VENV)/lib || true
	@touch $@

# Only after a change of pyproject.toml's dependencies; needs `uv` on the PATH. The first file locks what runs a
# study, the second also what tests and documents the project, in the same versions.
LOCK := uv pip compile pyproject.toml --universal --generate-hashes --no-header --quiet
lock:
	$(LOCK) --extra dev -o requirements-dev.lock
	$(LOCK) --extra build,kubernetes,slurm,ssh --constraint requirements-dev.lock -o requirements.lock

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache dist site
