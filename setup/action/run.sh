#!/usr/bin/env bash
# What action.yml does on a CI's machine, in the workspace: runs a scenario, or a gate against a baseline (docs/ci.md).
# The inputs come as INPUT_<NAME>; what came out goes to the files GITHUB_OUTPUT and GITHUB_STEP_SUMMARY, where they are
# named. The exit code is that of connlab.
set -euo pipefail
lab=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
readonly lab connlab=$lab/connlab
# shellcheck source=setup/lib.sh
source "$lab/setup/lib.sh"

refuse() {
  say "$1"
  say "hint: $2"
  end 2
}

# end CODE [FILE …]: says what came out, as the files of JSON have it, and ends.
end() {
  local code=$1
  shift
  "$python" "$lab/setup/action/summary.py" "$code" "$@"
  if ((code == 3)) && [[ ${INPUT_INCONCLUSIVE:-} == pass ]]; then
    say "inconclusive, which passes here"
    exit 0
  fi
  exit "$code"
}

find_python
export CONNLAB_RESULTS=$PWD/${INPUT_RESULTS:-results} CONNLAB_IMAGES=${INPUT_IMAGES:-${CONNLAB_IMAGES:-}}
[[ -n ${INPUT_SCENARIO:-} ]] || refuse "the input 'scenario' is missing" "scenario: accept-queue-overflow, or the folder of your own"
[[ ${INPUT_INCONCLUSIVE:=fail} =~ ^(fail|pass)$ ]] || refuse "the input 'inconclusive' is '$INPUT_INCONCLUSIVE'" "write fail or pass"
[[ ${INPUT_RUNS:=7} =~ ^[1-9][0-9]?$ ]] || refuse "the input 'runs' is '$INPUT_RUNS'" "write a number from 1 to 99"
gate=("${INPUT_BASELINE:-}" "${INPUT_FIGURE:-}" "${INPUT_WORSE_THAN:-}")
if [[ ${gate[*]} == "  " ]]; then
  gate=() INPUT_RUNS=1
else
  for one in "${gate[@]}"; do [[ -n $one ]] || refuse "a gate needs baseline, figure and worse-than" "give all three, or none"; done
fi

options=()
while IFS= read -r one; do
  [[ -z ${one// /} ]] || options+=("--set=$one")
done <<<"${INPUT_SET:-}"
[[ -z ${INPUT_PRESET:-} ]] || options+=("--preset=$INPUT_PRESET")
[[ -z ${INPUT_ARM:-} ]] || options+=("--arm=$INPUT_ARM")

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
runs=()
for ((number = 1; number <= INPUT_RUNS; number++)); do
  ((INPUT_RUNS == 1)) || say "run $number of $INPUT_RUNS"
  code=0
  runs+=("$work/$number.json")
  "$connlab" run "${options[@]}" --json -- "$INPUT_SCENARIO" >"$work/$number.json" || code=$?
  # A run that refutes its scenario's predictions is still evidence for a gate.
  if ((${#gate[@]} == 0)) || [[ $code != [013] ]]; then end "$code" "${runs[@]}"; fi
done

mapfile -t folders < <("$python" "$lab/setup/action/summary.py" folders "${runs[@]}")
code=0
"$connlab" gate --a "${gate[0]}" "${folders[@]/#/--b=}" --figure "${gate[1]}" --worse-than "${gate[2]}" \
  --junit "$CONNLAB_RESULTS/gate.xml" --json >"$work/gate.json" || code=$?
end "$code" "${runs[@]}" "$work/gate.json"
