#!/usr/bin/env bash
# Every shell script of the tree goes through shellcheck.
set -euo pipefail
mapfile -t scripts < <(grep -rlIE '^#!(/usr/bin/env |/bin/)(ba)?sh' . \
  --exclude='*.md' --exclude-dir={.git,.cache,.venv,.mypy_cache,.ruff_cache,node_modules,target,results} | sort)
printf '%s\0' "${scripts[@]}" | xargs -0 -n 8 -P "$(nproc)" shellcheck --external-sources
printf 'shellcheck: %d scripts\n' "${#scripts[@]}"
