package main

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/entrain-network/entrain/bench"
)

func TestBenchStepMeasuresAStep(t *testing.T) {
	s := newShell(t)
	var r stepResult
	out := s.ok("bench", "nano", "--batch", "2", "--sequence", "16", "--workers", "2", "--steps", "3", "--json")
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatal(err)
	}
	if r.Model != "nano" || r.Params != 988544 || r.Batch != 2 || r.Sequence != 16 || r.Threads != 2 || len(r.Seconds) < 3 || !(r.TokensPerSecond > 0) || r.Memory == 0 {
		t.Errorf("result is %+v", r)
	}
	if d := math.Abs(float64(r.Loss) - math.Log(256)); d > 3 {
		t.Errorf("the loss of a new model of 256 tokens is %g", r.Loss)
	}
	if text := s.ok("bench", "nano", "--batch", "1", "--sequence", "8", "--steps", "1"); !strings.Contains(text, "nano, 988,544 parameters, 1 x 8 tokens") {
		t.Errorf("for people: %q", text)
	}
}

func TestBenchStepRefusesWhatCannotBe(t *testing.T) {
	s := newShell(t)
	s.fails([]string{"bench", "huge"}, `"huge"`, "124m")
	s.fails([]string{"bench", "nano", "--workers", "0"}, "--workers 0")
	s.fails([]string{"bench", "nano", "--steps", "0"}, "--steps 0")
	s.fails([]string{"bench", "nano", "--batch", "-1"}, "--batch -1")
	s.fails([]string{"bench", "nano", "--sequence", "4096"}, "4096", "128")
}

func TestBenchEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := run(ctx, newShell(t).console, []string{"bench", "--quick"}); !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v", err)
	}
}

// benchReport is a report of round numbers.
var benchReport = bench.Report{
	Machine: bench.Machine{Platform: "linux/amd64", Processor: "Test Processor", Cores: 2, Memory: 24e9, Kernel: "avx512"}, Threads: 2,
	Peak: bench.Pair{One: 200e9, All: 400e9}, Read: bench.Pair{One: 10e9, All: 20e9}, Copy: bench.Pair{One: 30e9, All: 40e9},
	Sgemm: bench.Shares{"256": .5, "512": .9, "1024": .95, "2048": 1}, SgemmOne: bench.Shares{"256": .25, "512": .8, "1024": .85, "2048": .9},
	Products: bench.Shares{"qkv": .5, "head dw": .75}, ProdOne: bench.Shares{"qkv": .25, "head dw": .6},
	Flops: map[string]bench.Pair{"512": {One: 161e9, All: 361e9}, "head dw": {One: 121e9, All: 301e9}}, // measured apart from shares
	Training: []bench.Training{
		{Model: "nano", Params: 988544, Batch: 16, Sequence: 128, Tokens: bench.Pair{One: 1234, All: 2345}, Share: bench.Pair{One: .5, All: .6}, Memory: 123e6},
		{Model: "124m", Params: 123456789, Batch: 2, Sequence: 1024, Skipped: "not enough memory: it takes about 3.0 GB, and 1.0 GB are free"},
	},
	Exchange: bench.Exchange{Model: "50m", Params: 50e6, Payloads: 32, PayloadBytes: 136e3,
		Encode: bench.Pair{One: 1e9, All: 2e9}, Check: bench.Pair{One: 3e9, All: 4e9}, Apply: bench.Pair{One: 5e9, All: 6e9}, Hash: bench.Pair{One: 7e9, All: 8e9}},
}

func TestBenchTable(t *testing.T) {
	var out strings.Builder
	v := versionInfo{Version: "v1.2.3", Commit: "abc", Modified: true, Go: "go1.26", Platform: "linux/amd64"}
	if err := writeReport(&out, v, benchReport); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"entrain v1.2.3, commit abc with changes, go1.26 linux/amd64",
		"Test Processor, 2 cores, 24.0 GB of memory, kernels avx512",
		"peak, multiply-adds  200.0 GFLOP/s  400.0 GFLOP/s",
		"memory, copy  30.00 GB/s  40.00 GB/s",
		"sgemm 512  161.0 GFLOP/s  80.0 %  361.0 GFLOP/s  90.0 %",
		"product head dw  121.0 GFLOP/s  60.0 %  301.0 GFLOP/s  75.0 %",
		"nano, 988,544 weights, 16 x 128  1,234  50.0 %  2,345  60.0 %  123.0 MB",
		"124m, 123,456,789 weights, 2 x 1024  skipped: not enough memory: it takes about 3.0 GB, and 1.0 GB are free",
		"check a payload of 136.0 kB  3.00 GB/s  4.00 GB/s",
		"apply 32 payloads  5.00 GB/s  6.00 GB/s",
		"hash  7.00 GB/s  8.00 GB/s",
	} {
		if !containsFields(out.String(), want) {
			t.Errorf("no line %q in\n%s", want, out.String())
		}
	}
}

// containsFields tells whether a line of text has the words of want, whatever the space between them.
func containsFields(text, want string) bool {
	for line := range strings.Lines(text) {
		if strings.Join(strings.Fields(line), " ") == strings.Join(strings.Fields(want), " ") {
			return true
		}
	}
	return false
}

func TestBenchTableReportsThatItCannotBeWritten(t *testing.T) {
	full := errors.New("full")
	if err := writeReport(failingWriter{full}, versionInfo{}, benchReport); !errors.Is(err, full) {
		t.Errorf("error is %v", err)
	}
}

type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }
