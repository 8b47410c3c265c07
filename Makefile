# make book     execute every chapter and build the HTML book into _build/html
# make test     lint, the whole test suite, and nbval over the published chapters
# make publish  refresh the published outputs in book/chapters and the findings in README.md (tracked)
# make verify   recompute a sample of the published records and compare
# make bench    measure speed ratios side by side
# make clean    remove what was built; the environment in .venv stays
#
# Needs Python >= 3.11 with pip, and make. Another interpreter: make book PYTHON=python3.12

PYTHON ?= python3
JOBS ?= 2
BIN := .venv/bin
INSTALLED := .venv/.installed
RUN := $(BIN)/python -m lethe_lib

.PHONY: book test publish verify bench clean install

book: $(INSTALLED)
	$(RUN) book --processes $(JOBS)

test: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/python -m pytest -q -n $(JOBS) --dist loadscope tests book/chapters \
	    --nbval --nbval-current-env --nbval-sanitize-with tests/nbval_sanitize.cfg

publish: $(INSTALLED)
	$(RUN) findings
	$(RUN) book --publish --processes $(JOBS)

verify: $(INSTALLED)
	$(RUN) verify

bench: $(INSTALLED)
	$(RUN) bench

clean:
	rm -rf _build executed

install: $(INSTALLED)

# The stamp is newer than the files that the environment is made from, so nothing is installed twice.
$(INSTALLED): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	    { echo 'Python 3.11 or newer is needed: make PYTHON=/path/to/python3.11' >&2; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet -r requirements.lock
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	touch $@
