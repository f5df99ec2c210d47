# Each target is a thin line over `connlab` or a room's own checks; `make` lists them.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory


# Values reach the shell as environment, never as text of the recipe: `connlab` checks them itself. Make would expand a
# `$` in a value once more on the way out; what the user gave is taken as it is, whatever its name.
$(foreach name,$(.VARIABLES),$(if $(filter command,$(firstword $(origin $(name)))),$(eval export override $(name) := $$(value $(name)))))

.PHONY: help
help: ## this list
	@awk 'BEGIN {FS = ":.*## "} /^[a-z0-9%-]+:.*## / {sub("%", "<part>", $$1); printf "  make %-22s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# --- running --------------------------------------------------------------------------------------------------

# Each takes the options of `connlab <command> --help` as variables: --set a=1 --dry-run is SET="a=1" DRY=1.
commands := run lesson exercise drill serve new matrix search advise list show plan analyse report open notebook explain compare gate estimate observe doctor clean
.PHONY: $(commands)
$(commands): python
	@.venv/bin/python -m lab.cli.make $@

run: ## SCENARIO=<slug>, a folder or all: an experiment, from set-up to verdict
lesson: ## SCENARIO=<slug>: asks what you expect, runs, and shows what was measured beside it
exercise: ## EXERCISE=<slug>/<n>: runs a lesson's exercise and judges it against its answer
drill: ## be on call: a fault is drawn; a run tests your remedy
serve: ## lessons, the run at work, reports and the drill in a browser of this machine; Ctrl-C ends it
new: ## SCENARIO=<slug> or a folder: writes a scenario to begin with, and its lesson
matrix: ## MATRIX=<name>: every cell, shuffled; resumes; without a name, a list
search: ## SCENARIO=<slug> KNOB=<knob> CONDITION="client.requests.failed == 0": from which value it holds
advise: ## RUN=<run>: the knob that its main cause points to, the value, and the command that tests it
list: ## the scenarios
show: ## SCENARIO=<slug>: its effective knobs and its predictions
plan: ## SCENARIO=<slug>: what a run takes, of ports, files, memory and disk
analyse: ## RUN=<run>: everything derived again from the raw files
report: ## RUN=<run>: its report again, and the index of all runs
open: ## [RUN=<run>]: the newest run's report, or that one's, in the browser
notebook: ## [RUN=<run>]: a notebook over the newest run's files, or that one's: SQL and charts
explain: ## RUN=<run> with REQUEST=<id> or TOP=<n>: a request's story across all observers
compare: ## A="<runs>" B="<runs>" or MATRIX=<name>: what differs, and how sure that is
gate: ## A="<runs>" B="<runs>" FIGURE=<figure> WORSE_THAN=5%: whether B is worse; exit code 0 no, 1 yes, 3 it cannot be told
estimate: ## OVERFLOWS=<n> CONNECT_TIMEOUT=5s, or RUN=<run>: failed connections behind a counter
observe: ## CONTAINER=, COMPOSE=, PID= or POD=: watches what already runs
doctor: ## checks what this machine, or with ENGINE=kubernetes a cluster, needs
clean: ## removes every container, network, volume and image of the lab; results stay

# --- for those who change the lab -----------------------------------------------------------------------------

recording := .venv/bin/python -m tools.recording

.PHONY: record experiments mutate docs
record: python ## SCENARIO=<slug>|all RUNS=<n>: runs it until n runs are recorded in docs/experiments.jsonl; resumes
	@options=($${RUNS:+--runs="$$RUNS"}); $(recording) record --check "$${options[@]}" -- "$${SCENARIO:-}"; setup/ready.sh; \
		$(recording) record "$${options[@]}" -- "$${SCENARIO:-}"

experiments: python ## docs/experiments.md and docs/catalogue.md, made from the recorded runs
	@$(recording) experiments

mutate: python ## [SCENARIO=<slug>]: changes what recorded runs measured, and lists the predictions that notice nothing
	@$(recording) mutate -- $${SCENARIO:+"$$SCENARIO"}

docs: python ## a site of all documents and lessons, with a recorded report, into .cache/site
	@setup/python.sh docs; .venv/bin/connlab report -- docs/example >/dev/null; mkdir -p .cache/no-pages; \
		NO_MKDOCS_2_WARNING=1 .venv-docs/bin/mkdocs build --config-file tools/site/mkdocs.yml 2>&1 | sed '/^INFO/d'; \
		echo .cache/site/index.html

# --- set-up ---------------------------------------------------------------------------------------------------

.PHONY: setup setup-test python checksums sbom
setup: ## install, start and build what a run needs, and run nothing
	@setup/ready.sh
checksums: ## writes down anew what Maven fetches for the backend; look at the difference before you commit it
	@setup/images.sh java; setup/check.sh --mend java backend ./renew-checksums
sbom: ## what each image contains, as CycloneDX, into .cache/sbom; by syft, which is built for it once (some minutes)
	@setup/sbom.sh
setup-test:
	@setup/ready.sh test
python:
	@setup/python.sh

.PHONY: bundle load
bundle: ## [TO=<file>]: a participant's kit: one archive with which other machines run the lab without a network (docs/kit.md)
	@setup/bundle.sh "$${TO:-}"
load: ## BUNDLE=<file>: takes a kit in; after that no run needs a network
	@setup/load.sh "$${BUNDLE:-}"

# --- tests ----------------------------------------------------------------------------------------------------

# setup/loop/parts.py is the list of the parts, and has what each runs.
.PHONY: test check fmt parts
check: ## what is quick of it: format, lint, types and unit tests, of what has changed since it passed
	@SECONDS=0; setup/ready.sh check; .venv/bin/python -m setup.loop check --setup-seconds=$$SECONDS

fmt: ## mends what the formatters and linters can mend
	@setup/ready.sh check; .venv/bin/python -m setup.loop fmt

test: ## every check and test, from formatters to real runs, with the time of each part; goes on where one fails
	@SECONDS=0; setup/ready.sh test; .venv/bin/python -m setup.loop test --setup-seconds=$$SECONDS

# What stands behind the target's name reaches the shell as the values do.
test-% check-% fmt-% bench-%: export stem = $*

test-%: ## every check and test of one part; `make parts` lists them
	@setup/ready.sh test
	@.venv/bin/python -m setup.loop test -- "$$stem"
check-%:
	@setup/ready.sh check
	@.venv/bin/python -m setup.loop check -- "$$stem"
fmt-%:
	@setup/ready.sh check
	@.venv/bin/python -m setup.loop fmt -- "$$stem"

parts: python ## the parts of `make test`, `make check` and `make fmt`
	@.venv/bin/python -m setup.loop list

.PHONY: test-bare
test-bare: ## [RELEASE=bookworm|trixie]: the README's two commands on a bare Debian 12 and 13, as root; BUNDLE=<file>: a kit on one without a network; not part of test
	@setup/bare.sh $${BUNDLE:+--kit "$$BUNDLE"} $${RELEASE:+"$$RELEASE"}

.PHONY: test-faults
test-faults: ## [ONLY=<fault>]: real runs that are struck at every point, into docs/reliability.md; as root; not part of test
	@setup/ready.sh; setup/python.sh dev; setup/faults.sh "$${ONLY:-}"

.PHONY: example
example: setup-test ## [RUN=<run>]: records docs/example anew, or takes a recorded run, and makes the documents' pictures and story of it; wants a quiet machine
	@.venv/bin/python -m setup.example "$${RUN:-}"

.PHONY: test-advice
test-advice: setup-test ## [SCENARIO=<slug>]: runs every scenario and follows the advice of its runs; about 45 minutes; not part of test
	@CONNLAB_RESULTS=.cache/tests/results .venv/bin/python -m tests.advice $${SCENARIO:+"$$SCENARIO"}

.PHONY: fuzz
fuzz: setup-test ## [DURATION=30s] [EXAMPLES=1000]: hostile input: each Go fuzz target for so long, then so many examples of each property
	@setup/fuzz.sh "$${DURATION:-30s}" "$${EXAMPLES:-1000}"

# --- the lab's own speed --------------------------------------------------------------------------------------

.PHONY: bench bench-analysis
bench: setup-test ## what the lab itself costs and how fast it is, into docs/performance.md; wants a quiet machine; bench-<name>: one of them
	@.venv/bin/python -m tests.bench

bench-%: setup-test
	@.venv/bin/python -m tests.bench "$$stem"

bench-analysis: python ## [REQUESTS=1000000] [CALLS=10]: what the analysis of a large run takes of time and memory
	@.venv/bin/python -m tests.bench.analysis "$${REQUESTS:-1000000}" "$${CALLS:-10}"
