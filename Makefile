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
	@.venv/bin/python -m lab.cli.make $@ || { code=$$?; ((code == 2)) || echo "connlab: exit code $$code;" \
		"make itself ends with 2 whenever a command fails, and ./connlab with the code" >&2; exit $$code; }

run: ## SCENARIO=<name>, a folder or all: runs an experiment, from set-up to verdict
lesson: ## SCENARIO=<name>: asks what you expect, runs, and shows what was measured beside it
exercise: ## EXERCISE=<name>/<n>: runs a lesson's exercise and judges the result
drill: ## [SEED=] [LEVEL=1|2|3]: you are on call; find a random fault, and a run tests your remedy
serve: ## shows lessons, the current run, reports and the drill in a browser of this machine; Ctrl-C ends it
new: ## SCENARIO=<name> or a folder: scaffolds a runnable scenario and its lesson
matrix: ## MATRIX=<name>: runs every cell, shuffled; resumes; without a name, lists the matrices
search: ## SCENARIO=<name> KNOB=<knob> CONDITION="client.requests.failed == 0": from which value on it holds
advise: ## RUN=<run>: which knob would fix its main cause, the value, and the command that tests it
list: ## lists the scenarios by subject
show: ## SCENARIO=<name>: shows its knobs and predictions
plan: ## SCENARIO=<name>: how many ports and files, how much memory and disk a run takes
analyse: ## RUN=<run>: derives everything again from the raw files
report: ## RUN=<run>: writes its report again, and the index of all runs
open: ## [RUN=<run>]: opens a run's report in the browser; the newest by default
notebook: ## [RUN=<run>]: opens a notebook over a run's files, with SQL and charts; the newest by default
explain: ## RUN=<run> with REQUEST=<id> or TOP=<n>: what every observer saw of a request
compare: ## A="<runs>" B="<runs>" or MATRIX=<name>: what differs, and how sure that is
gate: ## A="<runs>" B="<runs>" FIGURE=<figure> WORSE_THAN=5%: whether B is worse; with JUNIT=<file> for a CI
estimate: ## OVERFLOWS=<n> CONNECT_TIMEOUT=5s, or RUN=<run>: how many connections failed behind a counter
observe: ## CONTAINER=, COMPOSE=, PID= or POD=: watches what already runs
doctor: ## checks what this machine, or with ENGINE=kubernetes a cluster, needs
clean: ## removes every container, network, volume and image of the lab; keeps results

# --- for those who change the lab -----------------------------------------------------------------------------

recording := .venv/bin/python -m tools.recording

.PHONY: record experiments mutate docs
record: python ## SCENARIO=<name>|all RUNS=<n>: runs it until docs/experiments.jsonl has n runs of it; resumes
	@options=($${RUNS:+--runs="$$RUNS"}); $(recording) record --check "$${options[@]}" -- "$${SCENARIO:-}"; setup/ready.sh; \
		$(recording) record "$${options[@]}" -- "$${SCENARIO:-}"

experiments: python ## makes docs/experiments.md and docs/catalogue.md from the recorded runs
	@$(recording) experiments

mutate: python ## [SCENARIO=<name>]: changes what recorded runs measured, and lists the predictions that notice nothing
	@$(recording) mutate -- $${SCENARIO:+"$$SCENARIO"}

docs: python ## builds a site of all documents and lessons, with a recorded report, in .cache/site
	@setup/python.sh docs; .venv/bin/connlab report -- docs/example >/dev/null; mkdir -p .cache/no-pages; \
		NO_MKDOCS_2_WARNING=1 .venv-docs/bin/mkdocs build --config-file tools/site/mkdocs.yml 2>&1 | sed '/^INFO/d'; \
		echo .cache/site/index.html

# --- set-up ---------------------------------------------------------------------------------------------------

.PHONY: setup setup-test python checksums sbom
setup: ## installs, starts and builds what a run needs, and runs nothing
	@setup/ready.sh
checksums: ## records anew what Maven fetches for the backend; read the difference before you commit it
	@setup/images.sh java; setup/check.sh --mend java backend ./renew-checksums
sbom: ## writes what each image contains, as CycloneDX, into .cache/sbom; builds syft once (some minutes)
	@setup/sbom.sh
setup-test:
	@setup/ready.sh test
python:
	@setup/python.sh

.PHONY: bundle load push-images
push-images: ## REGISTRY=<registry>/<prefix>: pushes the images of a run, for CONNLAB_IMAGES to pull
	@setup/push-images.sh "$${REGISTRY:-}"
bundle: ## [TO=<file>]: makes a participant's kit: one archive with which other machines run the lab without a network
	@setup/bundle.sh "$${TO:-}"
load: ## BUNDLE=<file>: loads a kit; after that no run needs a network
	@setup/load.sh "$${BUNDLE:-}"

# --- tests ----------------------------------------------------------------------------------------------------

# setup/loop/parts.py is the list of the parts, and has what each runs.
.PHONY: test check fmt parts
check: ## quick checks of what has changed: format, lint, types, unit tests
	@SECONDS=0; setup/ready.sh check; .venv/bin/python -m setup.loop check --setup-seconds=$$SECONDS

fmt: ## auto-fixes formatting and lint
	@setup/ready.sh check; .venv/bin/python -m setup.loop fmt

test: ## runs every check and test, from formatters to real runs; continues after a failure
	@SECONDS=0; setup/ready.sh test; .venv/bin/python -m setup.loop test --setup-seconds=$$SECONDS

# What stands behind the target's name reaches the shell as the values do.
test-% check-% fmt-% bench-%: export stem = $*

test-%: ## runs every check and test of one part; `make parts` lists them
	@setup/ready.sh test
	@.venv/bin/python -m setup.loop test -- "$$stem"
check-%:
	@setup/ready.sh check
	@.venv/bin/python -m setup.loop check -- "$$stem"
fmt-%:
	@setup/ready.sh check
	@.venv/bin/python -m setup.loop fmt -- "$$stem"

parts: python ## lists the parts of `make test`, `make check` and `make fmt`
	@.venv/bin/python -m setup.loop list

.PHONY: test-bare
test-bare: ## [RELEASE=bookworm|trixie] [BUNDLE=<kit>] [PULL=1]: tries the README's two commands on a bare Debian 12 and 13, or with PULL=1 the first result by pulled images, as root; not part of test
	@setup/bare.sh $${BUNDLE:+--kit "$$BUNDLE"} $${PULL:+--pull} $${RELEASE:+"$$RELEASE"}

.PHONY: test-faults
test-faults: ## [ONLY=<fault>]: injects faults into real runs, and writes docs/reliability.md; as root; not part of test
	@setup/ready.sh; setup/python.sh dev; setup/faults.sh "$${ONLY:-}"

.PHONY: example
example: setup-test ## [RUN=<run>]: records docs/example anew, or takes a run, and makes the documents' pictures from it; needs a quiet machine
	@.venv/bin/python -m setup.example "$${RUN:-}"

.PHONY: test-advice
test-advice: setup-test ## [SCENARIO=<name>]: runs every scenario and tests the advice of its runs; about 90 minutes; not part of test
	@rm -rf .cache/tests/advice; CONNLAB_RESULTS=.cache/tests/advice .venv/bin/python -m tests.advice $${SCENARIO:+"$$SCENARIO"}

.PHONY: fuzz
fuzz: setup-test ## [DURATION=30s] [EXAMPLES=1000]: tries hostile input: each Go fuzz target for so long, then so many examples of each property
	@setup/fuzz.sh "$${DURATION:-30s}" "$${EXAMPLES:-1000}"

# --- the lab's own speed --------------------------------------------------------------------------------------

.PHONY: bench bench-captures bench-noise bench-analysis
bench: setup-test ## measures what the lab costs, into docs/performance.md; needs a quiet machine; bench-<name>: one of them
	@.venv/bin/python -m tests.bench

bench-%: setup-test
	@.venv/bin/python -m tests.bench "$$stem"

bench-captures: setup-test ## CAPTURES=<folder>: what inspect and tshark say of public captures, into docs/performance.md
	@CAPTURES="$${CAPTURES:-}" .venv/bin/python -m tests.bench captures

bench-noise: python ## [RUNS=<folder>]: how often a comparison calls noise a difference, into docs/performance.md
	@RUNS="$${RUNS:-}" .venv/bin/python -m tests.bench noise

bench-analysis: python ## [REQUESTS=1000000] [CALLS=10]: measures time and memory of the analysis of a large run
	@.venv/bin/python -m tests.bench.analysis "$${REQUESTS:-1000000}" "$${CALLS:-10}"
