package exchange

import (
	"context"
	"crypto/tls"
	"net/http/httptrace"
	"strings"
	"time"
	"unsafe"

	"github.com/grafana/sobek"
	"go.k6.io/k6/js/common"
	"go.k6.io/k6/js/modules"
	"go.k6.io/k6/lib"
	"go.k6.io/k6/metrics"

	"connlab/k6/dial"
)

// sessionVU is a VU as k6's modules for WebSocket see it: during a session, its dial and its samples tell whose they are.
type sessionVU struct {
	modules.VU

	current *session
}

// session is a WebSocket session under way. k6 opens and ends one within an iteration, so its context stays the same.
type session struct {
	*Exchange

	ctx   context.Context
	state *lib.State
}

// Context implements modules.VU.
func (v *sessionVU) Context() context.Context {
	if v.current == nil {
		return v.VU.Context()
	}
	return v.current.ctx
}

// State implements modules.VU.
func (v *sessionVU) State() *lib.State {
	if v.current == nil {
		return v.VU.State()
	}
	return v.current.state
}

// beginSession follows a session whose script gives it these tags.
func beginSession(log *Log, vu modules.VU, url, name string, ownTags sobek.Value) *session {
	state := vu.State()
	ctx, attempt := dial.Begin(vu.Context(), state)
	tags := state.Tags.GetCurrentValues()
	// What is wrong with the script's tags, k6 itself says.
	_ = common.ApplyCustomUserTags(vu.Runtime(), &tags, ownTags)
	if _, named := tags.Tags.Get("name"); !named {
		tags.SetTag("name", name)
	}
	begun := log.begin(WebSocket, "GET", url, tags.Tags, attempt)
	trace := &httptrace.ClientTrace{
		GotConn: func(info httptrace.GotConnInfo) { begun.got(info.Conn, time.Now(), false) },
		TLSHandshakeDone: func(tls.ConnectionState, error) {
			begun.note(func() { begun.secured = time.Now() })
		},
		GotFirstResponseByte: func() { begun.note(func() { begun.answer = time.Now() }) },
	}
	own := *state
	values := state.Tags.GetCurrentValues()
	own.Tags = lib.NewVUStateTags(values.Tags)
	own.Tags.Modify(func(tagged *metrics.TagsAndMeta) {
		tagged.Metadata = values.Metadata
		tagged.SetMetadata(sessionKey, begun.id)
	})
	return &session{Exchange: begun, ctx: httptrace.WithClientTrace(ctx, trace), state: &own}
}

// broke keeps an error that k6 reports to the script. One that comes of sending after the script's own close is none of
// the session's.
func (s *session) broke(text string) {
	if strings.Contains(text, "close sent") {
		return
	}
	s.fail(codeOf(s.attempt, text), text)
}

// wsModule is k6/ws.
type wsModule struct{ log *Log }

// NewModuleInstance implements modules.Module.
func (m wsModule) NewModuleInstance(vu modules.VU) modules.Instance {
	watched := &sessionVU{VU: vu}
	instance := newWS(unsafe.Pointer(&root), watched)
	exported := instance.Exports().Default.(*sobek.Object) //nolint:forcetypeassert
	connect, _ := sobek.AssertFunction(exported.Get("connect"))
	_ = exported.Set("connect", func(call sobek.FunctionCall) sobek.Value {
		return m.connect(watched, connect, call)
	})
	return instance
}

// connect is ws.connect(): it returns when the session has ended. A handler may open another one meanwhile.
func (m wsModule) connect(vu *sessionVU, connect sobek.Callable, call sobek.FunctionCall) sobek.Value {
	rt, arguments := vu.Runtime(), append([]sobek.Value(nil), call.Arguments...)
	last := len(arguments) - 1
	if vu.VU.State() == nil || last < 1 {
		return called(connect, call.This, arguments)
	}
	setUp, isFunction := sobek.AssertFunction(arguments[last])
	if !isFunction {
		return called(connect, call.This, arguments)
	}
	url := arguments[0].String()
	var ownTags sobek.Value
	if last > 1 && !common.IsNullish(arguments[1]) {
		ownTags = arguments[1].ToObject(rt).Get("tags")
	}
	begun := beginSession(m.log, vu.VU, url, url, ownTags)
	outer := vu.current
	vu.current = begun
	defer func() {
		vu.current = outer
		begun.end(time.Now())
	}()
	arguments[last] = rt.ToValue(func(call sobek.FunctionCall) sobek.Value {
		socket := call.Argument(0).ToObject(rt)
		if on, canListen := sobek.AssertFunction(socket.Get("on")); canListen {
			_, _ = on(socket, rt.ToValue("error"), rt.ToValue(func(call sobek.FunctionCall) sobek.Value {
				begun.broke(textOf(call.Argument(0)))
				return sobek.Undefined()
			}))
		}
		return called(setUp, call.This, call.Arguments)
	})
	answer, err := connect(call.This, arguments...)
	if err != nil {
		begun.broke(err.Error())
		panic(err)
	}
	response := answer.ToObject(rt)
	text := response.Get("error").String()
	if status := response.Get("status").ToInteger(); status != 0 && status != 101 {
		text = "websocket: bad handshake"
	}
	if text != "" {
		begun.broke(text)
	}
	return answer
}

// called calls a function and lets its exception through.
func called(function sobek.Callable, this sobek.Value, arguments []sobek.Value) sobek.Value {
	value, err := function(this, arguments...)
	if err != nil {
		panic(err)
	}
	return value
}

func textOf(value sobek.Value) string {
	if err, isError := value.Export().(error); isError {
		return err.Error()
	}
	return value.String()
}

// webSocketsModule is k6/websockets.
type webSocketsModule struct{ log *Log }

// NewModuleInstance implements modules.Module.
func (m webSocketsModule) NewModuleInstance(vu modules.VU) modules.Instance {
	instance := newWebSockets(unsafe.Pointer(&root), vu)
	named := instance.Exports().Named
	blob := named["Blob"].(sobek.Value) //nolint:forcetypeassert
	open := func(call sobek.ConstructorCall) *sobek.Object { return m.open(vu, blob, call) }
	return exported{Named: map[string]any{"WebSocket": open, "Blob": blob}}
}

// exported is a module's instance whose exports do not change.
type exported modules.Exports

// Exports implements modules.Instance.
func (e exported) Exports() modules.Exports { return modules.Exports(e) }

// open is new WebSocket(). A user may have many at once, so each gets an instance of k6's module for itself.
func (m webSocketsModule) open(vu modules.VU, blob sobek.Value, call sobek.ConstructorCall) *sobek.Object {
	watched := &sessionVU{VU: vu}
	instance := newWebSockets(unsafe.Pointer(&root), watched)
	construct := instance.Exports().Named["WebSocket"].(func(sobek.ConstructorCall) *sobek.Object) //nolint:forcetypeassert
	setBlob(instance, blob)
	if vu.State() == nil {
		return construct(call)
	}
	rt, url := vu.Runtime(), call.Argument(0).String()
	var ownTags sobek.Value
	if params := call.Argument(2); !common.IsNullish(params) {
		ownTags = params.ToObject(rt).Get("tags")
	}
	begun := beginSession(m.log, vu, url, url, ownTags)
	watched.current = begun
	socket, opened := (*sobek.Object)(nil), false
	defer func() {
		// k6 refused the arguments: there was no session.
		if !opened {
			m.log.drop(begun.Exchange)
		}
	}()
	socket = construct(call)
	opened = true
	listen, _ := sobek.AssertFunction(socket.Get("addEventListener"))
	on := func(event string, handle func(*sobek.Object)) {
		_, _ = listen(socket, rt.ToValue(event), rt.ToValue(func(call sobek.FunctionCall) sobek.Value {
			handle(call.Argument(0).ToObject(rt))
			return sobek.Undefined()
		}))
	}
	on("error", func(event *sobek.Object) { begun.broke(event.Get("error").String()) })
	on("close", func(*sobek.Object) { begun.end(time.Now()) })
	return socket
}
