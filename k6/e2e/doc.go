// Package e2e has no code but tests: they build k6 as the image has it, run the workloads against real sockets, and check
// every line that k6 leaves behind against the schemas.
package e2e
