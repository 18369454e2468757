# Two commands: `make demo` shows the main job on examples/, `make test` runs every check. Both set up what they need.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check

.PHONY: demo test format verify-torch clean

demo: $(VENV)/base.stamp
	@$(BIN)/torchfix-codemods diff --unsafe-fixes examples || test $$? -eq 1

test: $(VENV)/dev.stamp $(VENV)/browser.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest -n 2 -q

format: $(VENV)/dev.stamp
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The contracts on another torch: `make verify-torch TORCH=2.4.1`. What it shows goes to docs/verified.json.
verify-torch: $(if $(TORCH),,no-version) $(VENV)/dev.stamp .venv-torch-$(TORCH)/torch.stamp
	$(BIN)/torchfix-codemods verify --device cpu --python .venv-torch-$(TORCH)/bin/python --record docs/verified.json

.PHONY: no-version
no-version:
	@echo 'name a version: make verify-torch TORCH=2.4.1' >&2; exit 2

.venv-torch-%/torch.stamp:
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip --quiet --disable-pip-version-check install torch==$* numpy
	@touch $@

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 10) else "Python 3.10 or newer is needed: make PYTHON=python3.12 …")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/base.stamp: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) install -c constraints.txt -e .
	@touch $@

$(VENV)/dev.stamp: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) install -c constraints.txt torch==2.13.0
	$(PIP) install -c constraints.txt -e '.[dev,verify,report]'
	@touch $@ $(VENV)/base.stamp

# A browser for the tests of pages: the one that is here, else that of Debian's packages (as root), else one that playwright brings.
$(VENV)/browser.stamp: $(VENV)/dev.stamp
	@command -v chromium >/dev/null || \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; \
	  then apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium >/dev/null; \
	  else $(BIN)/playwright install chromium; fi
	@touch $@

clean:
	rm -rf $(VENV) .venv-torch-* build dist *.egg-info
