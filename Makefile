# make run    check this machine, or the nodes of inventory.ini; ARGS="-c ntp" is handed on
# make test   all that CI asks: it stops at the first step that fails, each can be made by itself
# make lint   the steps of it that read the code and do not run it
# make mend   put right what lint can put right itself: layout, and what is generated
# make oldest  the tests of SSH, over the oldest libraries that are supported
# make demo   some nodes with faults, and what clustercheck says of them (as root, on Debian)
# make lab    nodes to try it on: NODES=64 of them; make lab-down takes them away
# make bench  what a node costs beside other tools, in small: 100 nodes, some minutes
# make clean  take away all that the others made
#
# PYTHON=python3.12 names another Python. All paths are relative, so blanks in ours do no harm.

PYTHON = python3
ARGS =
NODES = 8
# Tests wait more than they work: three for each core, and no more than eight.
WORKERS = $(shell n=$$(( 3 * $$(nproc) )); echo $$(( n < 8 ? n : 8 )))

.NOTPARALLEL:
.PHONY: run test lint mend clean fetch format style types shell imports docs pytest lab-test
.PHONY: oldest demo lab lab-down bench

# 0 to 3 is the report's verdict, not a failure of make; scripts call clustercheck itself.
run: .venv/ready
	@inventory=; [ ! -f inventory.ini ] || inventory='-i inventory.ini'; \
	.venv/bin/clustercheck run $$inventory $(ARGS) || [ $$? -le 3 ]

test: lint fetch pytest lab-test

lint: format style types shell imports docs

.venv/ready: pyproject.toml tools/venv.sh
	@PYTHON='$(PYTHON)' sh tools/venv.sh

fetch: .venv/ready
	@echo '== make fetch: the programs that the tests need'
	@.venv/bin/python tools/fetch.py

format: .venv/ready
	@echo '== make format: is it laid out as ruff does? (if not: make mend)'
	@.venv/bin/ruff format --check --diff --quiet

style: .venv/ready
	@echo '== make style: ruff'
	@.venv/bin/ruff check --quiet

types: .venv/ready
	@echo '== make types: mypy'
	@.venv/bin/mypy --no-error-summary

shell: .venv/ready
	@echo '== make shell: shellcheck'
	@.venv/bin/shellcheck .ci/run integrations/slurm/preamble.sh integrations/slurm/sbatch-gated tests/*.sh tests/lab/*.sh tools/*.sh
	@# Parts of one script: what one of them uses or never calls, another gives or does.
	@.venv/bin/shellcheck --exclude=SC2154,SC2329 clustercheck/*.sh

imports: .venv/ready
	@echo '== make imports: do imports point one way?'
	@.venv/bin/lint-imports --no-logo >.venv/imports.log || { cat .venv/imports.log; exit 1; }

docs: .venv/ready
	@echo '== make docs: is what is generated up to date? (if not: make mend)'
	@.venv/bin/cog --verbosity=0 --check --diff README.md docs/*.md

pytest: .venv/ready
	@echo '== make pytest: the tests (some of them: .venv/bin/pytest tests/test_host.py -k sudo)'
	@.venv/bin/pytest -n $(WORKERS) --ignore tests/lab $(ARGS)

lab-test: .venv/ready
	@echo '== make lab-test: real nodes with real faults'
	@.venv/bin/pytest -n 2 --dist loadfile tests/lab

oldest: .venv/ready
	@.venv/bin/python tools/oldest.py

bench: .venv/ready
	@.venv/bin/python -m benchmarks.fan_out --nodes 100 --window 32 --rounds 1 $(ARGS)

demo: .venv/ready
	@.venv/bin/python -m tests.lab demo

lab: .venv/ready
	@.venv/bin/python -m tests.lab up $(NODES)

lab-down: .venv/ready
	@.venv/bin/python -m tests.lab down

mend: .venv/ready
	@.venv/bin/ruff format --quiet
	@.venv/bin/ruff check --fix --quiet
	@.venv/bin/cog --verbosity=1 -r README.md docs/*.md
	@.venv/bin/python -m clustercheck.example >.venv/example.ini
	@cp .venv/example.ini inventory.example.ini

clean:
	@[ ! -e .tools/lab/pid ] || .venv/bin/python -m tests.lab down
	rm -rf .venv .tools build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache
	rm -rf .import_linter_cache .hypothesis
	find . -name __pycache__ -prune -exec rm -rf {} +
