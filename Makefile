PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
FILES := setup.cfg setup.py pyproject.toml constraints.txt

.PHONY: demo test conformance zoo docs bench clean

demo: $(VENV)/installed
	@mkdir -p build
	@for model in transformer lstm; do \
		echo; \
		$(BIN)/depgraph analyze fixtures/$$model.py || exit; \
		$(BIN)/depgraph render fixtures/$$model.py -o build/$$model.svg || exit; \
	done

test: $(VENV)/installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest -n 2

# Every operator of PyTorch's database, with more samples than the tests take.
conformance: $(VENV)/installed-test
	$(BIN)/python -m tests.conformance

# Well-known models against their own behaviour; writes docs/zoo.md.
zoo: $(VENV)/installed-test
	$(BIN)/python -m tests.zoo

# Rewrites the tables and the pictures of docs/from-rnn-to-transformer.md.
docs: $(VENV)/installed-test
	$(BIN)/python -m tests.story

# Speed and memory against networkx, rustworkx, igraph and SciPy; writes docs/benchmarks.md.
bench: $(VENV)/installed-bench
	$(BIN)/python -m benchmarks

# Stamp files: the second run installs nothing.
$(VENV)/installed: $(FILES)
	$(PYTHON) -m venv $(VENV)
	$(PIP) -c constraints.txt -e .
	@touch $@

$(VENV)/installed-test: $(VENV)/installed
	$(PIP) -c constraints.txt -e ".[test]"
	@touch $@

$(VENV)/installed-bench: $(VENV)/installed
	$(PIP) -c constraints.txt -e ".[bench]"
	@touch $@

clean:
	rm -rf $(VENV) build dist *.egg-info .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -not -path "./.git/*" -prune -exec rm -rf {} +
