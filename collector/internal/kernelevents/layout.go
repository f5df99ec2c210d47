package kernelevents

import (
	"fmt"
	"strings"

	"github.com/cilium/ebpf/btf"
)

// A layout has what the programs must know of this kernel: where the fields stand that they read. The kernel itself says
// so (BTF).
type layout struct {
	spec *btf.Spec
	errs []error
}

// at returns the offset of a field in bytes: at("sock", "__sk_common.skc_net"). A member of an anonymous struct or union
// counts as one of the struct around it.
func (l *layout) at(structure, path string) int32 {
	var found *btf.Struct
	if err := l.spec.TypeByName(structure, &found); err != nil {
		l.errs = append(l.errs, fmt.Errorf("the kernel does not tell the struct %s: %w", structure, err))
		return 0
	}
	var members []btf.Member
	members, bits := found.Members, uint32(0)
	for _, name := range strings.Split(path, ".") {
		member, offset, ok := find(members, name)
		if !ok {
			l.errs = append(l.errs, fmt.Errorf("this kernel's struct %s has no %s", structure, path))
			return 0
		}
		bits += offset
		members = membersOf(member.Type)
	}
	return int32(bits / 8)
}

func find(members []btf.Member, name string) (btf.Member, uint32, bool) {
	for _, member := range members {
		if member.Name == name {
			return member, uint32(member.Offset), true
		}
		if member.Name == "" {
			if inner, offset, ok := find(membersOf(member.Type), name); ok {
				return inner, uint32(member.Offset) + offset, true
			}
		}
	}
	return btf.Member{}, 0, false
}

func membersOf(of btf.Type) []btf.Member {
	switch known := btf.UnderlyingType(of).(type) {
	case *btf.Struct:
		return known.Members
	case *btf.Union:
		return known.Members
	}
	return nil
}

// parameters returns how many arguments a tracepoint has; 0 if this kernel has no such tracepoint.
func (l *layout) parameters(tracepoint string) int {
	var typedef *btf.Typedef
	if err := l.spec.TypeByName("btf_trace_"+tracepoint, &typedef); err != nil {
		return 0
	}
	pointer, ok := typedef.Type.(*btf.Pointer)
	if !ok {
		return 0
	}
	function, ok := pointer.Target.(*btf.FuncProto)
	if !ok {
		return 0
	}
	return len(function.Params) - 1 // the first one is the kernel's own
}

// names returns the kernel's names of an enum's values, without the prefix.
func (l *layout) names(enum, prefix string) map[uint32]string {
	named := map[uint32]string{}
	var found *btf.Enum
	if err := l.spec.TypeByName(enum, &found); err != nil {
		return named
	}
	for _, value := range found.Values {
		if name, ok := strings.CutPrefix(value.Name, prefix); ok {
			named[uint32(value.Value)] = name
		}
	}
	return named
}
