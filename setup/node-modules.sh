#!/usr/bin/env bash
# Gives the room in the working directory its node_modules: installed once for each lock file, and kept in the cache.
set -euo pipefail

wanted=$(cat package.json package-lock.json <(node --version) | sha256sum | cut -c1-16)
readonly kept=/cache/node/$wanted
if [[ ! -d $kept ]]; then
  npm ci --no-audit --no-fund
  # Whole or not at all, also beside another check that does the same.
  making=$(mktemp -d /cache/node-modules.XXXXXX)
  mv node_modules "$making"
  mkdir -p /cache/node
  mv -T "$making" "$kept" 2>/dev/null || rm -rf "$making"
fi
ln -sfn "$kept/node_modules" node_modules
