package exchange

import "go.k6.io/k6/ext"

// Register puts these modules in the place of k6's own, and returns the log of what scripts do by them.
func Register(recorded func() bool) *Log {
	log := NewLog(recorded)
	follow(log)
	for name, module := range map[string]any{
		"k6/ws":                      wsModule{log},
		"k6/websockets":              webSocketsModule{log},
		"k6/experimental/websockets": webSocketsModule{log},
		"k6/net/grpc":                grpcModule{log},
	} {
		ext.Register(name, ext.JSExtension, module)
	}
	return log
}
