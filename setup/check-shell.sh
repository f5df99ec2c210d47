#!/usr/bin/env bash
# Every shell script of the tree goes through shellcheck.
set -euo pipefail
mapfile -t scripts < <(grep -rlIE '^#!(/usr/bin/env |/bin/)(ba)?sh' . --exclude-dir={.git,.venv,node_modules,target,results} | sort)
shellcheck --external-sources "${scripts[@]}"
printf 'shellcheck: %d scripts\n' "${#scripts[@]}"
