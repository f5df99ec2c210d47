"""What action.yml does on a CI's machine: run.sh, and the summary that it writes (docs/ci.md)."""
