# How the tests that run inside the image say what held: one line each, counted by check-variants.
# shellcheck shell=bash

ok() { printf 'ok - %s\n' "$1"; }
not_ok() { printf 'not ok - %s\n' "$1"; }

# is WHAT EXPECTED ACTUAL
is() {
  if [[ $3 == "$2" ]]; then ok "$1"; else not_ok "$1: expected '$2', saw '$3'"; fi
}
