package event

import (
	"reflect"
	"testing"

	"github.com/entrain-network/entrain/wire"
)

func TestEventsAreOneObjectWithTheirHead(t *testing.T) {
	type head struct {
		Process string `json:"process"`
	}
	for _, c := range []struct {
		ev   Event
		want string
	}{
		{Note{Text: "hello"}, `{"process":"p","event":"note","text":"hello"}`},
		{Traffic{}, `{"process":"p","event":"traffic"}`},
		{
			Applied{Round: 3, Step: 2, Results: 4, Params: wire.Hash{1}},
			`{"process":"p","event":"applied","round":3,"step":2,"results":4,"params":"01` +
				`00000000000000000000000000000000000000000000000000000000000000"}`,
		},
		{Other{Name: "of another version"}, `{"process":"p","event":"of another version"}`},
	} {
		b, err := Marshal(head{"p"}, c.ev)
		if err != nil || string(b) != c.want {
			t.Errorf("%+v is %s, %v; want %s", c.ev, b, err, c.want)
		}
		if got, err := Unmarshal(b); err != nil || !reflect.DeepEqual(got, c.ev) {
			t.Errorf("%s reads as %+v, %v", b, got, err)
		}
	}
}

// Each kind names one type: logs and JSON are read by it.
func TestKindsAreDistinct(t *testing.T) {
	seen := make(map[string]bool)
	for _, ev := range All() {
		if seen[ev.Kind()] || ev.Kind() == "" {
			t.Errorf("%T is of kind %q, as another", ev, ev.Kind())
		}
		seen[ev.Kind()] = true
	}
}
