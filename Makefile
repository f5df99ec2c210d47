# Each target is a thin line over `connlab` or a room's own checks; `make` lists them.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

connlab := .venv/bin/connlab
recording := .venv/bin/python -m tools.recording

# Values reach the shell as environment, never as text of the recipe: `connlab` checks them itself. Make would expand a
# `$` in a value once more on the way out; what the user gave is taken as it is, whatever its name.
$(foreach name,$(.VARIABLES),$(if $(filter command,$(firstword $(origin $(name)))),$(eval override $(name) := $$(value $(name)))))
export SCENARIO SET PRESET ARM RUN REQUEST WORST A B FIGURE WORSE_THAN BETTER JUNIT MATRIX KNOB UNTIL FROM TO STEP OVERFLOWS CONNECT_TIMEOUT SYSCTLS DRY NEW RUNS RELEASE ENGINE CONTEXT NAMESPACE REGISTRY SPREAD CONTAINER COMPOSE PID POD PEER FOR CAPTURE CAPTURE_MAX_MB INTERFACE ROLE ALLOW_HOST DURATION EXAMPLES ONLY EXERCISE SEED LEVEL MORE CAUSE PLACE PORT WORKSHOP BUNDLE REPETITIONS METRICS METRICS_PORT PROFILE

# Several values in one are parted by spaces or line breaks; `read` ends with 1 because no end mark comes.
parted = { read -rd '' -a $(1) <<<"$$$(2)" || true; }
sets = $(call parted,sets,SET); options=("$${sets[@]/\#/--set=}")
series = $(sets); if [[ -n "$${DRY:-}" ]]; then options+=(--dry-run); fi; if [[ -n "$${NEW:-}" ]]; then options+=(--new); fi
repetitions = options+=($${REPETITIONS:+--repetitions="$$REPETITIONS"})
preset = options+=($${PRESET:+--preset="$$PRESET"})
arm = options+=($${ARM:+--arm="$$ARM"})
cluster = $${ENGINE:+--engine="$$ENGINE"} $${CONTEXT:+--context="$$CONTEXT"} $${NAMESPACE:+--namespace="$$NAMESPACE"}
engine = options+=($(cluster) $${REGISTRY:+--registry="$$REGISTRY"}); if [[ -n "$${SPREAD:-}" ]]; then options+=(--spread); fi
metrics = if [[ -n "$${METRICS:-}" ]]; then options+=(--metrics); fi; options+=($${METRICS_PORT:+--metrics-port="$$METRICS_PORT"})
# What comes before `connlab` counts as well; a shell that is too old to tell the time leaves it out.
profile = if [[ -n "$${PROFILE:-}" ]]; then options+=(--profile); began=$${EPOCHREALTIME:-}; export CONNLAB_BEGAN=$${began/,/.}; fi
# The input is checked first: nobody waits for a set-up to be told of a slip, nor for one that nothing is run with.
checked = if $(3); then $(connlab) $(1) --check "$${options[@]}" -- "$$$(2)"; setup/ready.sh; fi; \
	$(connlab) $(1) "$${options[@]}" -- "$$$(2)"
not_dry = [[ -z "$${DRY:-}" ]]

.PHONY: help
help: ## this list
	@awk 'BEGIN {FS = ":.*## "} /^[a-z0-9%-]+:.*## / {sub("%", "<part>", $$1); printf "  make %-22s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# --- running --------------------------------------------------------------------------------------------------

.PHONY: run lesson exercise drill serve docs new record experiments mutate matrix search advise list show plan analyse report open notebook explain compare gate estimate observe doctor clean
run: python ## SCENARIO=<slug> or <folder> [SET="backend.accept_count=10 …"] [PRESET=published] [ARM=…] [REPETITIONS=8]: one experiment, from set-up to verdict; SCENARIO=all: every one; ENGINE=kubernetes [CONTEXT= NAMESPACE= REGISTRY= SPREAD=1]: on a cluster; METRICS=1 [METRICS_PORT=9645]: with figures for Prometheus; PROFILE=1: and where its time went
	@$(series); $(repetitions); $(preset); $(arm); $(engine); $(metrics); $(profile); $(call checked,run,SCENARIO,$(not_dry))

lesson: python ## SCENARIO=<slug> [SET=…] [PRESET=…] [ARM=…]: asks what you expect, runs, and shows what was measured beside it
	@$(series); $(preset); $(arm); $(call checked,lesson,SCENARIO,$(not_dry))

exercise: python ## EXERCISE=<slug>/<n> [SET="knob=value"]: runs a lesson's exercise and judges it against its answer; an open one takes your knob
	@$(sets); $(call checked,exercise,EXERCISE,true)

drill: python ## [SEED=<n>] [LEVEL=1|2|3] [MORE=<evidence>] [CAUSE=… PLACE=… SET="knob=value"]: be on call: a fault is drawn; a run tests your remedy
	@$(sets); options+=($${SEED:+--seed="$$SEED"} $${LEVEL:+--level="$$LEVEL"} $${MORE:+--more="$$MORE"} \
		$${CAUSE:+--cause="$$CAUSE"} $${PLACE:+--place="$$PLACE"}); \
		$(connlab) drill --check "$${options[@]}"; setup/ready.sh; $(connlab) drill "$${options[@]}"

serve: python ## [PORT=8321]: lessons, the run at work, reports and the drill in a browser of this machine; Ctrl-C ends it
	@$(connlab) serve $${PORT:+--port="$$PORT"}

docs: python ## a site of all documents and lessons, with a recorded report, into .cache/site
	@setup/python.sh docs; $(connlab) report -- docs/example >/dev/null; mkdir -p .cache/no-pages; \
		NO_MKDOCS_2_WARNING=1 .venv-docs/bin/mkdocs build --config-file tools/site/mkdocs.yml 2>&1 | sed '/^INFO/d'; \
		echo .cache/site/index.html

new: python ## SCENARIO=<slug> or <folder>: writes a scenario to begin with, and its lesson
	@$(connlab) new -- "$$SCENARIO"

record: python ## SCENARIO=<slug>|all RUNS=<n>: runs it until n runs are recorded in docs/experiments.jsonl; goes on where it stopped
	@options=($${RUNS:+--runs="$$RUNS"}); $(recording) record --check "$${options[@]}" -- "$$SCENARIO"; setup/ready.sh; \
		$(recording) record "$${options[@]}" -- "$$SCENARIO"

experiments: python ## docs/experiments.md and the README's table, made from the recorded runs
	@$(recording) experiments

mutate: python ## [SCENARIO=<slug>]: changes what recorded runs measured, and lists the predictions that notice nothing
	@$(recording) mutate -- $${SCENARIO:+"$$SCENARIO"}

matrix: python ## MATRIX=<name> [SET=…] [DRY=1] [NEW=1] [REPETITIONS=8]: every cell, shuffled; goes on where it stopped; without a name, a list
	@$(series); $(repetitions); $(call checked,matrix,MATRIX,$(not_dry) && [[ -n "$${MATRIX:-}" ]])

search: python ## SCENARIO=… KNOB=backend.max_connections UNTIL="client.requests.failed == 0" [FROM= TO= STEP=]: where it begins to hold
	@$(series); options+=(--knob="$$KNOB" --until="$$UNTIL" $${FROM:+--from="$$FROM"} $${TO:+--to="$$TO"} $${STEP:+--step="$$STEP"}); \
		$(call checked,search,SCENARIO,$(not_dry))

advise: python ## RUN=<run>: the knob that its main cause points to, the value, and the command that tests it
	@$(connlab) advise -- "$$RUN"

list: python ## the scenarios
	@$(connlab) list

show: python ## SCENARIO=<slug> [SET=…] [PRESET=…]: a scenario with its effective knobs and its predictions
	@$(sets); $(preset); $(connlab) show "$${options[@]}" -- "$$SCENARIO"

plan: python ## SCENARIO=<slug> [SET=…] [PRESET=…] [ARM=…] [ENGINE=kubernetes SPREAD=1]: what a run takes, of ports, files, memory and disk
	@$(sets); $(preset); $(arm); $(connlab) plan "$${options[@]}" $${ENGINE:+--engine="$$ENGINE"} $${SPREAD:+--spread} -- "$$SCENARIO"

analyse: python ## RUN=<folder>: everything derived again from the raw files
	@$(connlab) analyse -- "$$RUN"

report: python ## RUN=<folder>: its report again, one page, and the index of all runs
	@$(connlab) report -- "$$RUN"

open: python ## [RUN=<folder>]: the newest run's report, or that one's, in the browser
	@$(connlab) open -- "$$RUN"

notebook: python ## [RUN=<folder>]: a notebook over the newest run's files, or that one's: SQL and charts
	@$(connlab) notebook -- "$$RUN"

explain: python ## RUN=<folder> with REQUEST=<id> or WORST=<n>: a request's story across all observers
	@$(connlab) explain $${REQUEST:+--request="$$REQUEST"} $${WORST:+--worst="$$WORST"} -- "$$RUN"

compare: python ## A=<run> B=<run> or A="<run> …" B="<run> …" or MATRIX=<name>: what differs, and how sure that is
	@$(call parted,a,A); $(call parted,b,B); $(connlab) compare "$${a[@]/#/--a=}" "$${b[@]/#/--b=}" $${MATRIX:+--matrix="$$MATRIX"}

gate: python ## A="<runs>" B="<runs>" FIGURE=client.latency_ms.p99 WORSE_THAN=5% [BETTER=more|less] [JUNIT=<file>]: whether B is worse; exit code 0 no, 1 yes, 3 it cannot be told
	@$(call parted,a,A); $(call parted,b,B); $(connlab) gate "$${a[@]/#/--a=}" "$${b[@]/#/--b=}" --figure="$$FIGURE" \
		--worse-than="$$WORSE_THAN" $${BETTER:+--better="$$BETTER"} $${JUNIT:+--junit="$$JUNIT"}

estimate: python ## OVERFLOWS=<n> CONNECT_TIMEOUT=5s [SYSCTLS="…"] or RUN=<folder>: failed connections behind a counter
	@$(call parted,sysctls,SYSCTLS); $(connlab) estimate $${OVERFLOWS:+--overflows="$$OVERFLOWS"} \
		$${CONNECT_TIMEOUT:+--connect-timeout="$$CONNECT_TIMEOUT"} "$${sysctls[@]/#/--sysctl=}" $${RUN:+--run="$$RUN"}

observe: python ## CONTAINER=<name> | COMPOSE=<project>[/<service>] | PID=<n> | POD=<namespace>/<pod> [CONTAINER=<its> CONTEXT= REGISTRY=] [FOR=60s] [CAPTURE=headers|handshakes|off] [CONNECT_TIMEOUT=5s] [PEER=<container>] [ROLE=role.yaml] [ALLOW_HOST=1]: watches what already runs
	@$(call parted,containers,CONTAINER); $(call parted,peers,PEER); \
		options=("$${containers[@]/#/--container=}" "$${peers[@]/#/--peer-container=}" $${COMPOSE:+--compose="$$COMPOSE"} \
			$${PID:+--pid="$$PID"} $${POD:+--pod="$$POD"} $${CONTEXT:+--context="$$CONTEXT"} $${REGISTRY:+--registry="$$REGISTRY"} $${FOR:+--for="$$FOR"} $${CAPTURE:+--capture="$$CAPTURE"} $${INTERFACE:+--interface="$$INTERFACE"} \
			$${CAPTURE_MAX_MB:+--capture-max-mb="$$CAPTURE_MAX_MB"} $${CONNECT_TIMEOUT:+--connect-timeout="$$CONNECT_TIMEOUT"} \
			$${ROLE:+--role="$$ROLE"} $${ALLOW_HOST:+--host}); \
		$(connlab) observe --check "$${options[@]}"; setup/ready.sh; $(connlab) observe "$${options[@]}"

doctor: python ## what this machine lacks; ENGINE=kubernetes: what a cluster lacks
	@$(connlab) doctor $(cluster)

clean: python ## remove every container, network, volume and image of the lab; results stay; ENGINE=kubernetes: its pods
	@$(connlab) clean $(cluster)

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
	@.venv/bin/python -m setup.example "$$RUN"

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
