package spec

import (
	"reflect"
	"testing"

	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/tensor"
)

// TestKindsAreWhatTheySay compares each kind with the codec that it makes.
func TestKindsAreWhatTheySay(t *testing.T) {
	layout := tensor.NewLayout([]tensor.Spec{{Name: "a", Shape: []int{3, 65, 130}}, {Name: "b"}, {Name: "c", Shape: []int{7}}})
	for _, k := range Kinds {
		made, err := k.Defaults.New(layout, nil)
		if err != nil {
			t.Fatal(err)
		}
		d, disputable := made.(codec.Disputable)
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

// derived are the fields of a coordinator.Config that no key sets.
var derived = map[string]bool{"ModelHash": true, "StateHash": true, "SpecHash": true, "Owner": true}

func TestFaultsOfTheCoordinatorHaveKeys(t *testing.T) {
	c := reflect.TypeFor[coordinator.Config]()
	for i := range c.NumField() {
		if name := c.Field(i).Name; keyOf[name] == "" && !derived[name] {
			t.Errorf("Config.%s has no key: a person who typed it would read the field's name", name)
		}
	}
}
