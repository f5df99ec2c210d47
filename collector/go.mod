module connlab/collector

go 1.25.0

require (
	github.com/cilium/ebpf v0.22.0
	github.com/florianl/go-nfqueue/v2 v2.0.2
	github.com/gopacket/gopacket v1.7.7
	github.com/klauspost/compress v1.18.0
	github.com/mdlayher/netlink v1.7.2
	github.com/parquet-go/parquet-go v0.32.0
	github.com/prometheus/client_model v0.6.2
	github.com/prometheus/common v0.67.5
	github.com/santhosh-tekuri/jsonschema/v6 v6.0.3
	golang.org/x/net v0.55.0
	golang.org/x/sys v0.47.0
)

require (
	github.com/andybalholm/brotli v1.1.1 // indirect
	github.com/google/go-cmp v0.7.0 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/josharian/native v1.1.0 // indirect
	github.com/mdlayher/socket v0.5.1 // indirect
	github.com/munnerz/goautoneg v0.0.0-20191010083416-a7dc8b61c822 // indirect
	github.com/parquet-go/bitpack v1.0.0 // indirect
	github.com/parquet-go/jsonlite v1.0.0 // indirect
	github.com/pierrec/lz4/v4 v4.1.21 // indirect
	github.com/twpayne/go-geom v1.6.1 // indirect
	go.yaml.in/yaml/v2 v2.4.3 // indirect
	golang.org/x/sync v0.20.0 // indirect
	golang.org/x/text v0.37.0 // indirect
	google.golang.org/protobuf v1.36.11 // indirect
)
