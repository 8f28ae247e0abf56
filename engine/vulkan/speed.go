package vulkan

import (
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/entrain-network/entrain/engine/vulkan/gpu"
	"github.com/entrain-network/entrain/engine/vulkan/kernel"
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/exact8"
	"github.com/entrain-network/entrain/llama"
)

// sides are those of the square products by which devices are compared, and sidesListed those that
// List measures. The largest counts that takes no longer than long, because a slow device would
// take minutes over the last.
var (
	sides       = []int{128, 512, 2048}
	sidesListed = []int{128, 512, 1024, 2048, 4096}
)

const long = 30 * time.Millisecond

// A GPU that has idled takes a while to reach its clock.
const (
	triesLeast, triesMost = 3, 50
	triedFor              = 100 * time.Millisecond
)

// speed measures products with run, in operations a second: of each side the fastest of some tries.
func speed(sides []int, run func(side int) error) (all []float64, err error) {
	for _, side := range sides {
		best, begin := 0.0, time.Now()
		var took time.Duration
		for tries := 0; tries < triesLeast || tries < triesMost && time.Since(begin) < triedFor; tries++ {
			start := time.Now()
			if err := run(side); err != nil {
				return nil, err
			}
			took = time.Since(start)
			best = max(best, 2*float64(side)*float64(side)*float64(side)/took.Seconds())
		}
		all = append(all, best)
		if took > long {
			break
		}
	}
	return all, nil
}

// Speed measures products of numerics on the device, in operations a second.
func (d *Device) Speed(n llama.Numerics) (float64, error) {
	all, err := d.products(n, sides)
	if err != nil {
		return 0, err
	}
	return all[len(all)-1], nil
}

// products measures products of numerics of each side, up to the first that takes long.
func (d *Device) products(n llama.Numerics, sides []int) ([]float64, error) {
	most := sides[len(sides)-1]
	var at [3]gpu.Words
	for i := range at {
		var err error
		if at[i], err = d.device.New(most * most); err != nil {
			return nil, err
		}
		defer at[i].Free()
	}
	left, right := packed(most, most, most), packed(most, most, most)
	eight, err := d.device.New(left + right)
	if err != nil {
		return nil, err
	}
	defer eight.Free()
	if err := d.device.Run(func(c *gpu.Commands) { c.Clear(at[0]); c.Clear(at[1]) }); err != nil {
		return nil, err
	}
	return speed(sides, func(side int) error {
		return d.device.Run(func(c *gpu.Commands) {
			m := &memory{left: eight.First(left), right: eight.At(left)}
			r := &recorder{Kernels: d.k, sizes: sizes{Config: llama.Config{Numerics: n}}, m: m, c: c}
			r.product(at[2], kernel.Rows(at[0], side), kernel.Rows(at[1], side), side, side, side, side, false)
		})
	})
}

// processors measures the same products on the processors.
func processors(n llama.Numerics) float64 {
	most := sides[len(sides)-1]
	pool := exact.NewPool(min(runtime.GOMAXPROCS(0), exact.MaxWorkers))
	defer pool.Close()
	eight := exact8.NewMultiplier(pool)
	x, y, z := make([]float32, most*most), make([]float32, most*most), make([]float32, most*most)
	all, _ := speed(sides, func(side int) error { // never fails
		if n == llama.Exact8 {
			eight.Gemm(side, side, side, x, side, 1, y, 1, side, z, side, false)
		} else {
			exact.Gemm(pool, side, side, side, x, side, 1, y, 1, side, z, side, false)
		}
		return nil
	})
	return all[len(all)-1]
}

// A Row is a device in a table of all.
type Row struct {
	Name          string  `json:"device"` // as --device takes it
	Is            string  `json:"is"`
	Kind          string  `json:"kind"`
	Driver        string  `json:"driver"`
	Memory        uint64  `json:"memory_bytes"`
	Mode          string  `json:"mode,omitempty"`     // "" if no mode gives the right bits
	Matrices      string  `json:"matrices,omitempty"` // as kernel.Kernels has it
	OperationsSec float64 `json:"operations_per_second,omitempty"`
	EightSec      float64 `json:"exact8_operations_per_second,omitempty"` // of products in 8 bits
	// Products and Products8 are operations a second by the side of the product, up to the first that
	// takes long.
	Products  map[int]float64 `json:"products,omitempty"`
	Products8 map[int]float64 `json:"exact8_products,omitempty"`
	Fault     string          `json:"fault,omitempty"`
	Proof     Proof           `json:"proof"`
}

// measure measures the products of a device.
func (r *Row) measure(d *Device) error {
	for _, x := range []struct {
		of      llama.Numerics
		by      *map[int]float64
		largest *float64
	}{{llama.Exact, &r.Products, &r.OperationsSec}, {llama.Exact8, &r.Products8, &r.EightSec}} {
		all, err := d.products(x.of, sidesListed)
		if err != nil {
			return err
		}
		*x.by = map[int]float64{}
		for i, speed := range all {
			(*x.by)[sidesListed[i]], *x.largest = speed, speed
		}
	}
	return nil
}

// List proves all devices again, and measures them.
func List() ([]Row, error) {
	instance, err := gpu.Open()
	if err != nil {
		return nil, err
	}
	infos := instance.Devices()
	instance.Close()
	var rows []Row
	for n, info := range infos {
		r := Row{Name: fmt.Sprintf("vulkan:%d", n), Is: info.Name, Kind: info.Kind.String(), Memory: info.MemoryBytes,
			Driver: strings.TrimSpace(info.Driver + " " + info.DriverInfo)}
		d, err := Open(n, "")
		if err == nil {
			r.Mode, r.Matrices, r.Proof = d.Proof.Mode.String(), d.k.Matrices, d.Proof
			err = r.measure(d)
			d.Close()
		}
		if err != nil {
			r.Fault = err.Error()
		}
		rows = append(rows, r)
	}
	return rows, nil
}
