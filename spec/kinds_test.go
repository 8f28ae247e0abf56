package spec

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/codec/all"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/tensor"
)

// TestKindsAreWhatTheySay compares each kind with the codec that it makes.
func TestKindsAreWhatTheySay(t *testing.T) {
	layout := tensor.NewLayout([]tensor.Spec{{Name: "a", Shape: []int{3, 65, 130}}, {Name: "b"}, {Name: "c", Shape: []int{7}}})
	for _, k := range all.Kinds() {
		made, err := k.Defaults.New(layout, nil)
		if err != nil {
			t.Fatal(err)
		}
		d, disputable := made.(codec.Disputable)
		if _, followable := made.(codec.Followable); followable != k.Followable {
			t.Errorf("%s: followable %v", k.Name, followable)
		}
		if _, sliceable := made.(codec.Sliceable); sliceable != k.Sliceable || disputable != (k.Disputable != nil) {
			t.Errorf("%s: sliceable %v, disputable %v", k.Name, sliceable, disputable)
		}
		if disputable && k.Disputable(k.Defaults, layout) != uint64(d.Blocks()) {
			t.Errorf("%s: %d blocks, the codec has %d", k.Name, k.Disputable(k.Defaults, layout), d.Blocks())
		}
		if err := k.Defaults.Check(); err != nil {
			t.Errorf("%s: the defaults: %v", k.Name, err)
		}
		if !reflect.TypeOf(k.Defaults).Comparable() {
			t.Errorf("%s: options must be comparable, since specifications are", k.Name)
		}
	}
}

// Whatever is wrong with a configuration, the error names a key of the specification.
func TestFaultsOfTheCoordinatorNameKeys(t *testing.T) {
	hashes := map[string]bool{"ModelHash": true, "StateHash": true, "SpecHash": true, "Owner": true}
	seen := map[string]bool{}
	look := func(c coordinator.Config, l coordinator.Limits) {
		for _, f := range c.Check(l) {
			seen[f.Key] = true
			if tree := any(nil); !hashes[f.Key] {
				keys := strings.Split(f.Key, ".")
				for _, k := range slices.Backward(keys) {
					tree = map[string]any{k: tree}
				}
				if unknown := unknownKeys(nil, "", tree.(map[string]any), formOf(all.Kinds())); len(unknown) > 0 {
					t.Errorf("%v: there is no key %s", f, unknown)
				}
			}
		}
	}
	for i := range reflect.TypeFor[coordinator.Config]().NumField() {
		for _, base := range []coordinator.Config{{}, {VerificationPercent: 5, Validators: 1, Exchange: coordinator.Buckets}} {
			f := reflect.ValueOf(&base).Elem().Field(i)
			look(base, coordinator.Limits{Members: 1})
			if f.CanUint() {
				f.SetUint(1<<(f.Type().Bits()-1)<<1 - 1)
			}
			look(base, coordinator.Limits{Members: 1})
		}
	}
	// No value of these is wrong by itself.
	const free = 4
	if n := reflect.TypeFor[coordinator.Config]().NumField(); len(seen) < n-free {
		t.Errorf("%d of %d fields were at fault: %v", len(seen), n, slices.Sorted(maps.Keys(seen)))
	}
}
