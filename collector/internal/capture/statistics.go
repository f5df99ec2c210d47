package capture

import (
	"regexp"
	"strconv"
)

// statistics is what tcpdump prints when it ends; a figure it did not print is nil.
type statistics struct {
	Captured        *int64 `json:"packets_captured"`
	Received        *int64 `json:"packets_received"`
	DroppedByKernel *int64 `json:"packets_dropped_by_kernel"`
}

var statisticsLine = regexp.MustCompile(`^(\d+) packets? (captured|received by filter|dropped by kernel)$`)

// parse takes one line of tcpdump's standard error and says whether it was one of the statistics.
func (s *statistics) parse(line string) bool {
	match := statisticsLine.FindStringSubmatch(line)
	if match == nil {
		return false
	}
	figure, err := strconv.ParseInt(match[1], 10, 64)
	if err != nil {
		return false
	}
	switch match[2] {
	case "captured":
		s.Captured = &figure
	case "received by filter":
		s.Received = &figure
	default:
		s.DroppedByKernel = &figure
	}
	return true
}

// summaryLine is what tcpdump says in between, when a signal asks it.
var summaryLine = regexp.MustCompile(`^(\d+ packets? captured), (\d+ packets? received by filter), (\d+ packets? dropped by kernel)(?:, .*)?$`)

// parseSummary takes a line of tcpdump's standard error and gives the statistics so far, if it has them.
func parseSummary(line string) (soFar statistics, ok bool) {
	match := summaryLine.FindStringSubmatch(line)
	if match == nil {
		return statistics{}, false
	}
	for _, part := range match[1:] {
		soFar.parse(part)
	}
	return soFar, soFar.complete()
}

// allTaken says that the kernel keeps no packet back. Where it dropped some, the counts do not tell.
func (s *statistics) allTaken() bool {
	return s.complete() && *s.DroppedByKernel == 0 && *s.Captured == *s.Received
}

func (s *statistics) complete() bool {
	return s.Captured != nil && s.Received != nil && s.DroppedByKernel != nil
}
