package flow_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"connlab/collector/internal/flowtest"
)

func TestRandomTrafficGivesTheFlowsOfTheOracle(t *testing.T) {
	const batches = 20
	seeds := 2000
	if testing.Short() {
		seeds = 200
	}
	for batch := range batches {
		t.Run(fmt.Sprintf("Batch%02d", batch), func(t *testing.T) {
			t.Parallel()
			for seed := batch; seed < seeds && !t.Failed(); seed += batches {
				path := flowtest.Save(t, randomCapture(uint64(seed)))
				compareWithOracle(t, fmt.Sprintf("seed %d", seed), path, false)
			}
		})
	}
}

// randomCapture returns a capture of some connections: three of four times with
// all faults, else as well-behaved ends make them.
func randomCapture(seed uint64) []byte {
	random := rand.New(rand.NewPCG(seed, 0))
	traffic := flowtest.Traffic{
		Connections: 1 + random.IntN(8), Exchanges: 1 + random.IntN(8), GapUs: 1000, Faulty: seed%4 != 0,
	}
	packets := flowtest.Packets(flowtest.Ethernet, traffic.Segments(random))
	return flowtest.Capture(flowtest.Pcap, flowtest.Ethernet.Type, 128, packets)
}
