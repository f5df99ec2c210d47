package exchange

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/grafana/sobek"
	"go.k6.io/k6/js/common"
	"go.k6.io/k6/js/modules"
	"go.k6.io/k6/lib"
	"go.k6.io/k6/metrics"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"

	"connlab/k6/dial"
)

// The status of an answer to a call that is none of gRPC's: a proxy's own. gRPC keeps it in its text alone.
var foreignStatus = regexp.MustCompile(`unexpected HTTP status code received from server: ([1-9][0-9]{2})`)

const answered = 200

type callerKey struct{}

type callKey struct{}

// caller is who makes a call, and what the script says of it. k6 hands no sample of a call that its timeout ends.
type caller struct {
	state *lib.State
	tags  *metrics.TagSet
	url   string
	// last is the last call that was made.
	last *atomic.Pointer[Exchange]
}

// callerVU is a VU as k6/net/grpc sees it: the context of its calls tells whose they are.
type callerVU struct {
	modules.VU

	// next is what the script says of the call that it is about to make.
	next *atomic.Pointer[caller]
}

// Context implements modules.VU.
func (v callerVU) Context() context.Context {
	ctx, state := v.VU.Context(), v.VU.State()
	if state == nil {
		return ctx
	}
	from := caller{state: state}
	if next := v.next.Load(); next != nil {
		from = *next
	}
	from.last = new(atomic.Pointer[Exchange])
	return context.WithValue(ctx, callerKey{}, from)
}

// announce keeps what the script says of a call to a method of an address, in its parameters.
func (v callerVU) announce(address, method string, params sobek.Value) {
	state := v.VU.State()
	if state == nil {
		return
	}
	tags := state.Tags.GetCurrentValues()
	if !common.IsNullish(params) {
		// What is wrong with the script's tags, k6 itself says.
		_ = common.ApplyCustomUserTags(v.VU.Runtime(), &tags, params.ToObject(v.VU.Runtime()).Get("tags"))
	}
	method = "/" + strings.TrimPrefix(method, "/")
	v.next.Store(&caller{state: state, tags: named(tags, method), url: address + method})
}

// grpcModule is k6/net/grpc.
type grpcModule struct{ log *Log }

// NewModuleInstance implements modules.Module.
func (m grpcModule) NewModuleInstance(vu modules.VU) modules.Instance {
	calling := callerVU{VU: vu, next: new(atomic.Pointer[caller])}
	instance := newGRPC(unsafe.Pointer(&root), calling)
	exports := instance.Exports().Named
	client := exports["Client"].(func(sobek.ConstructorCall) *sobek.Object) //nolint:forcetypeassert
	exports["Client"] = func(call sobek.ConstructorCall) *sobek.Object { return m.client(calling, client(call)) }
	stream := exports["Stream"].(func(sobek.ConstructorCall) *sobek.Object) //nolint:forcetypeassert
	exports["Stream"] = func(call sobek.ConstructorCall) *sobek.Object {
		over, isObject := call.Argument(0).(*sobek.Object)
		if isObject && over.Prototype() != nil {
			call.Arguments = append([]sobek.Value{over.Prototype()}, call.Arguments[1:]...)
			calling.announce(over.Get(addressName).String(), call.Argument(1).String(), call.Argument(2))
			defer calling.next.Store(nil)
		}
		return stream(call)
	}
	return instance
}

// addressName is the property of a client that has the address it is connected to.
const addressName = "connlabAddress"

// client puts an object over k6's client, which takes no new properties. What it does not have is k6's own.
func (m grpcModule) client(vu callerVU, inner *sobek.Object) *sobek.Object {
	rt := vu.Runtime()
	outer := rt.NewObject()
	_ = outer.SetPrototype(inner)
	connect, _ := sobek.AssertFunction(inner.Get("connect"))
	_ = outer.Set("connect", func(call sobek.FunctionCall) sobek.Value {
		began, address := time.Now(), call.Argument(0).String()
		_ = outer.DefineDataProperty(addressName, rt.ToValue(address), sobek.FLAG_TRUE, sobek.FLAG_TRUE, sobek.FLAG_FALSE)
		connected, err := connect(inner, call.Arguments...)
		if err != nil {
			m.failedToConnect(vu, address, began, err)
			panic(err)
		}
		return connected
	})
	for _, name := range []string{"invoke", "asyncInvoke"} {
		invoke, _ := sobek.AssertFunction(inner.Get(name))
		_ = outer.Set(name, func(call sobek.FunctionCall) sobek.Value {
			if address := outer.Get(addressName); address != nil {
				vu.announce(address.String(), call.Argument(0).String(), call.Argument(2))
			}
			// An asynchronous call asks for its context later.
			if name == "invoke" {
				defer vu.next.Store(nil)
			}
			return called(invoke, inner, call.Arguments)
		})
	}
	return outer
}

// failedToConnect records a client that got no connection, as a call that failed: no call will.
func (m grpcModule) failedToConnect(vu modules.VU, address string, began time.Time, err error) {
	state := vu.State()
	if state == nil {
		return
	}
	attempt := dial.NewAttempt(state, began)
	if !attempt.Claim(state) {
		return
	}
	tags := state.Tags.GetCurrentValues()
	failed := m.log.begin(GRPC, "CONNECT", address, named(tags, "connect"), attempt)
	failed.GRPCStatus = int(codes.Unavailable)
	failed.fail(codeOf(attempt, err.Error()), err.Error())
	failed.end(time.Now())
}

// follower hears of every call that k6's gRPC makes.
type follower struct{ log *Log }

// TagConn implements stats.Handler.
func (follower) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// HandleConn implements stats.Handler.
func (follower) HandleConn(context.Context, stats.ConnStats) {}

// TagRPC implements stats.Handler.
func (f follower) TagRPC(ctx context.Context, info *stats.RPCTagInfo) context.Context {
	from, known := ctx.Value(callerKey{}).(caller)
	if !known {
		return ctx
	}
	// Reflection makes calls that the script does not.
	if from.tags == nil || !strings.HasSuffix(from.url, info.FullMethodName) {
		from.tags, from.url = named(from.state.Tags.GetCurrentValues(), info.FullMethodName), info.FullMethodName
	}
	attempt := dial.NewAttempt(from.state, time.Now())
	call := f.log.begin(GRPC, "POST", from.url, from.tags, attempt)
	call.before = from.last.Swap(call)
	return context.WithValue(ctx, callKey{}, call)
}

func named(tags metrics.TagsAndMeta, name string) *metrics.TagSet {
	if _, has := tags.Tags.Get("name"); !has {
		tags.SetTag("name", name)
	}
	return tags.Tags
}

// HandleRPC implements stats.Handler.
func (f follower) HandleRPC(ctx context.Context, stat stats.RPCStats) {
	call, known := ctx.Value(callKey{}).(*Exchange)
	if !known {
		return
	}
	switch said := stat.(type) {
	case *stats.Begin:
		if said.IsTransparentRetryAttempt && call.before != nil {
			call.note(func() { call.attempt.Again(call.before.attempt) })
			f.log.drop(call.before)
		}
		call.before = nil
	case *stats.OutHeader:
		if conn := dial.ConnOf(said.LocalAddr); conn != nil {
			call.got(conn, time.Now(), conn.Use())
		}
	case *stats.OutPayload:
		call.note(func() { call.Sent++ })
	case *stats.InHeader:
		call.note(func() { call.Status, call.answer = answered, time.Now() })
	case *stats.InPayload:
		call.note(func() { call.Received++ })
	case *stats.InTrailer:
		// An answer may consist of a trailer alone.
		call.note(func() {
			call.Status, call.ended = answered, true
			if call.answer.IsZero() {
				call.answer = time.Now()
			}
		})
	case *stats.End:
		f.ended(ctx, call, said)
	}
}

func (f follower) ended(ctx context.Context, call *Exchange, said *stats.End) {
	reported := status.Convert(said.Error)
	call.note(func() { call.GRPCStatus = int(reported.Code()) })
	// A call that the client itself cancels has not failed.
	if reported.Code() != codes.OK && (reported.Code() != codes.Canceled || call.endedByServer()) {
		code := codeOther
		if reported.Code() == codes.DeadlineExceeded {
			code = codeRequestTimeout
		}
		call.note(func() {
			if foreign := foreignStatus.FindStringSubmatch(reported.Message()); foreign != nil {
				call.Status, _ = strconv.Atoi(foreign[1])
			}
			if call.had == nil {
				// It waited for a connection that did not come.
				from, _ := ctx.Value(callerKey{}).(caller)
				call.attempt.Claim(from.state)
				if call.attempt.FailedToDial() != "" {
					code = codeOf(call.attempt, reported.Message())
				}
			}
		})
		call.fail(code, fmt.Sprintf("%s: %s", reported.Code(), reported.Message()))
	}
	f.log.mu.Lock()
	if f.log.open[call.id] == call {
		f.log.calls[callEnd{said.EndTime.UnixNano(), metrics.D(said.EndTime.Sub(said.BeginTime))}] = call
	}
	f.log.mu.Unlock()
	call.end(said.EndTime)
}

// follow has every call of gRPC heard of.
func follow(log *Log) { dialGRPCWith(grpc.WithStatsHandler(follower{log})) }
