package flow_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"connlab/collector/internal/flowtest"
)

func TestRandomTrafficGivesTheFlowsOfTheOracle(t *testing.T) {
	seeds := 30000
	if testing.Short() {
		seeds = 30
	}
	for seed := range seeds {
		random := rand.New(rand.NewPCG(uint64(seed), 0))
		traffic := flowtest.Traffic{
			Connections: 1 + random.IntN(8), Exchanges: 1 + random.IntN(8), GapUs: 1000, Faulty: seed%4 != 0,
		}
		packets := flowtest.Packets(flowtest.Ethernet, traffic.Segments(random))
		path := flowtest.Save(t, flowtest.Capture(flowtest.Pcap, flowtest.Ethernet.Type, 128, packets))
		compareWithOracle(t, fmt.Sprintf("seed %d", seed), path, false)
		if t.Failed() {
			return
		}
	}
}
