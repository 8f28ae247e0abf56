package vulkan

import (
	"strings"
	"sync"
	"testing"

	"github.com/entrain-network/entrain/codec/slice"
	"github.com/entrain-network/entrain/codec/sparseloco"
	"github.com/entrain-network/entrain/engine"
	"github.com/entrain-network/entrain/engine/cpu"
	"github.com/entrain-network/entrain/engine/enginetest"
	"github.com/entrain-network/entrain/tests/campaign"
)

// opened is the first device, proven once for all tests.
var opened = sync.OnceValues(func() (*Device, error) { return Open(0, "") })

// device returns the first device. Without one it skips the test; one that is not right fails it.
func device(t testing.TB) *Device {
	t.Helper()
	d, err := opened()
	if err != nil && strings.Contains(err.Error(), "other bits") {
		t.Fatal(err)
	}
	if err != nil {
		t.Skipf("%v (Debian's package mesa-vulkan-drivers has a device that needs no GPU)", err)
	}

	t.Log(d)
	return d
}

func TestEngine(t *testing.T) {
	d := device(t)
	enginetest.Test(t, func(t testing.TB, r engine.Run) engine.Engine {
		const micro = 4
		switch o := r.Codec.(type) {
		case slice.Config: // the device computes a gradient as for distro
			campaign.Only(t)
		case sparseloco.Options:
			if o.InnerOptimizer == "" && r.Base == nil { // adapters are trained so, too
				campaign.Only(t)
			}
		}
		c, err := r.Codec.New(r.Model.Layout(), nil)
		if err != nil {
			t.Fatal(err)
		}
		m, err := Devices{d}.NewModel(r.Model, r.Base, r.Sequence, micro, r.Inner != nil, c)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(m.Close)
		e, err := cpu.New(r, cpu.Options{
			Workers: 1, Micro: micro, Device: m,
			DeviceFailed: func(err error) { t.Errorf("the device failed: %v", err) },
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(e.Close)
		return e
	})
}
