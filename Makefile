# Thin: each target calls what a person could type. `make env PYTHON=python3.11` names another Python.
PYTHON ?= python3
SIZE ?= smoke
SUITE ?= das2016
# Tests that need the machine for themselves run alone, after the others (tests/phases.py).
PARALLEL := --numprocesses=logical --maxprocesses=4
INSIDE := PATH="$(CURDIR)/.venv/bin:$$PATH"

# Compiled modules are kept, whatever the caller has set: without them each process compiles this project anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo check test env docs bench reference aa-study lint clean

help:
	@echo "make demo   from nothing to reports/index.html, $(SUITE) at size $(SIZE); SUITE=all: every suite"
	@echo "make check  format, lint, types, unit and property tests, in 2 minutes"
	@echo "make test   all tests, in 43 minutes on two cores"
	@echo "make env    only the set-up: system packages, .venv, pinned packages, Horovod"
	@echo "make docs   the tables of the docs and READMEs that are written from the code: fields, metrics, strategies, size smoke"
	@echo "make bench  speed of transports and collectives beside their bounds"
	@echo "make reference   every suite at size smoke as one run, in hours of a quiet machine; goes on where it was interrupted"
	@echo "make aa-study   launches of identical arms: false alarms and resolution of comparisons, in two quiet hours"
	@echo "make lint   formatting, lint, types, workflow"
	@echo "make clean  remove .venv, caches and pages; results/ stays"

env:
	@$(PYTHON) -m tools.setup

demo:
	@echo "Demo: $(SUITE) at size $(SIZE), then reports/index.html. SUITE=all does every suite."
	@echo "On two cores up to 30 minutes and 8 GB of disk the first time, 10 minutes with warm caches."
	@$(PYTHON) -m tools.setup
	@$(PYTHON) -m tools.setup extras $(SUITE)
	$(INSIDE) snakemake $(SUITE) --config size=$(SIZE)
	@echo "The report: $(CURDIR)/reports/index.html"

check: env
	$(INSIDE) ruff format --check .
	$(INSIDE) ruff check .
	$(INSIDE) mypy
	$(INSIDE) python -m pytest $(PARALLEL) tests/unit tests/property

test:
	@$(PYTHON) -m tools.setup --with-tests
	@$(PYTHON) -m tools.setup mpich
	@$(PYTHON) -m tools.setup extras all
	$(INSIDE) python -m pytest $(PARALLEL)

docs: env
	$(INSIDE) python -m tools.field_page
	$(INSIDE) python -m tools.strategy_table
	$(INSIDE) python -m tools.metric_pages
	$(INSIDE) python -m tools.smoke_tables

bench: env
	$(INSIDE) python -m benchmarks.network python -m pytest benchmarks --benchmark-enable --benchmark-only --timeout=0 -o faulthandler_timeout=0

reference: env
	@$(PYTHON) -m tools.setup extras all
	$(INSIDE) python -m tools.reference run

aa-study: env
	$(INSIDE) python -m tools.aa_study run
	$(INSIDE) python -m tools.aa_study pack
	$(INSIDE) python -m tools.aa_study table

lint: env
	$(INSIDE) ruff check .
	$(INSIDE) ruff format --check .
	$(INSIDE) mypy
	$(INSIDE) snakefmt --check Snakefile workflows
	$(INSIDE) snakemake --lint

clean:
	rm -rf .venv .venv-mpich .snakemake .pytest_cache .mypy_cache .ruff_cache .hypothesis .benchmarks build dist *.egg-info logs reports
