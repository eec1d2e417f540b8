package kinds_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"llmparity/internal/bench/plan"
	"llmparity/internal/engine"
	"llmparity/internal/kinds"
	"llmparity/internal/kit/check"
)

// Top-level keys of a kind must not clash with fields of plans or other kinds.
func TestKindsDoNotClash(t *testing.T) {
	check.Also(t, clash(kinds.All))
}

// clash returns an error if a top-level key of a kind is taken.
func clash(ks engine.Kinds) error {
	seen := map[string]reflect.Type{} // by key
	for _, k := range ks {
		var names []string
		var config reflect.Type
		if k.VersionAxis != "" {
			names = append(names, k.VersionAxis, k.VersionList())
			if !strings.HasSuffix(k.VersionAxis, "_version") {
				return fmt.Errorf("%s: a version axis must be named ENGINE_version", k.VersionAxis)
			}
		}
		if k.Config != nil {
			config = reflect.TypeOf(k.Config())
			names = append(names, k.Section)
		}
		if k.Root {
			names = names[:len(names)-1]
			for _, f := range k.Config().Fields() {
				if f.Key != "" {
					names = append(names, f.Key)
				}
			}
		}
		for _, name := range names {
			if other, taken := seen[name]; taken && (config == nil || other != config) {
				return fmt.Errorf("%s belongs to two kinds", name)
			}
			seen[name] = config
			if _, err := plan.Parse([]byte(name+": x\n"), "p"); !strings.Contains(err.Error(), "unknown field") {
				return fmt.Errorf("%s is a field of plans: %w", name, err)
			}
		}
	}
	return nil
}
