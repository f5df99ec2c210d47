"""`make test`, `make check` and `make fmt`: what each part of the repository runs, and how the parts are run."""
