package exchange

import (
	"reflect"
	"unsafe" // go:linkname, and a field that k6 keeps for itself

	"github.com/grafana/sobek"
	_ "go.k6.io/k6/cmd" // links k6's modules
	"go.k6.io/k6/js/modules"
	"google.golang.org/grpc"
)

// k6 keeps the packages of its own modules internal, so their methods are reached by name. A k6 without these names
// does not link.

//go:linkname newWS go.k6.io/k6/internal/js/modules/k6/ws.(*RootModule).NewModuleInstance
func newWS(root unsafe.Pointer, vu modules.VU) modules.Instance

//go:linkname newWebSockets go.k6.io/k6/internal/js/modules/k6/websockets.(*RootModule).NewModuleInstance
func newWebSockets(root unsafe.Pointer, vu modules.VU) modules.Instance

//go:linkname newGRPC go.k6.io/k6/internal/js/modules/k6/grpc.(*RootModule).NewModuleInstance
func newGRPC(root unsafe.Pointer, vu modules.VU) modules.Instance

// Of type func(...grpc.DialOption): what every connection of gRPC is dialled with.
//
//go:linkname addGlobalDialOptions google.golang.org/grpc/internal.AddGlobalDialOptions
var addGlobalDialOptions any

// root stands for the modules' own roots, which have no fields.
var root struct{}

func dialGRPCWith(option grpc.DialOption) {
	addGlobalDialOptions.(func(...grpc.DialOption))(option) //nolint:forcetypeassert
}

// setBlob has an instance of k6/websockets take another's Blobs for its own.
func setBlob(instance modules.Instance, constructor sobek.Value) {
	field := reflect.ValueOf(instance).Elem().FieldByName("blobConstructor")
	reflect.NewAt(field.Type(), unsafe.Pointer(field.UnsafeAddr())).Elem().Set(reflect.ValueOf(constructor))
}
