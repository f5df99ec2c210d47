#!/usr/bin/env bash
# shellcheck on every shell script of the tree.
set -euo pipefail
mapfile -t scripts < <(grep -rlIE '^#!(/usr/bin/env |/bin/)(ba)?sh' . --exclude-dir={.git,.venv,node_modules,target,results} | sort)
shellcheck --external-sources "${scripts[@]}"
printf 'shellcheck: %d scripts\n' "${#scripts[@]}"
