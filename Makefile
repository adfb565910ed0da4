# Two commands on a fresh machine with python3 and make: `make demo` and `make test`.
# Everything lives in .venv; nothing is installed outside the checkout.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

.DEFAULT_GOAL := help

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(STAMP): pyproject.toml src/gplc/_version.py
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet --editable '.[test]'
	@touch $@

.PHONY: setup
setup: $(STAMP) ## create .venv and install the package in it

.PHONY: demo
demo: $(STAMP) ## fit GPLC to the motorcycle data, predict, draw, and write a report, all in out/
	$(BIN)/gplc demo --out out

.PHONY: lint
lint: $(STAMP) ## style, formatting and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

.PHONY: docs
docs: $(STAMP) ## the documentation's site, in build/docs; a warning is an error
	$(BIN)/sphinx-build -q -W --keep-going -b html docs build/docs

.PHONY: outputs
outputs: $(STAMP) ## run the code of the pages, and put what it prints and draws into them
	$(BIN)/python docs/outputs.py

.PHONY: stranger
stranger: ## from pip install to a report, timed in fresh environments
	$(PYTHON) benchmarks/stranger.py

.PHONY: test
test: lint docs ## lint, build the documentation, then every test (two processes)
	$(BIN)/pytest -q -n 2 --dist worksteal

.PHONY: test-heavy
test-heavy: $(STAMP) ## statistical checks, fuzzer, stops and resumes at full length
	$(BIN)/python benchmarks/heavy.py

.PHONY: oldest
oldest: ## the tests of what users touch, with the oldest versions that are allowed
	$(PYTHON) -m venv build/oldest
	$(PYTHON) .ci/oldest.py > build/oldest.txt
	build/oldest/bin/pip install --quiet --constraint build/oldest.txt \
		--editable '.[all,arviz,dask,skpro]' polars==1.0 pytest pytest-xdist hypothesis
	build/oldest/bin/pytest -q -n 2 -W ignore tests/cli tests/estimators tests/plots tests/report

.PHONY: mutants
mutants: $(STAMP) ## put mistakes into copies of the source: do the tests notice? (a quarter of an hour)
	$(BIN)/python tests/mutants/run.py

.PHONY: bench
bench: $(STAMP) ## speed, as ratios measured in one run
	$(BIN)/python benchmarks/sweep.py
	$(BIN)/python benchmarks/kernels.py

.PHONY: bench-data
bench-data: $(STAMP) ## known noise, rounding and repeats in figures (half an hour)
	$(BIN)/python benchmarks/data_as_they_come.py

.PHONY: race
race: $(STAMP) ## samplers against each other and growth with n (an hour)
	$(BIN)/python benchmarks/race.py
	$(BIN)/python benchmarks/scaling.py

.PHONY: bench-large
bench-large: $(STAMP) ## many rows: peers, exact fits, time of one gradient
	$(BIN)/python benchmarks/large.py --passes --rows 10000 100000 1000000
	$(BIN)/python benchmarks/large.py --exact
	$(BIN)/python benchmarks/large.py

.PHONY: which
which: $(STAMP) ## leave-one-out against refits, answers of gplc compare, envelopes (two hours)
	$(BIN)/python benchmarks/loo.py
	$(BIN)/python benchmarks/which_noise.py --first 100
	$(BIN)/python benchmarks/envelopes.py

.PHONY: format
format: $(STAMP) ## let ruff rewrite the files
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

.PHONY: clean
clean: ## remove .venv and everything generated
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
