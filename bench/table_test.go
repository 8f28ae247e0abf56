package bench

import (
	"errors"
	"strings"
	"testing"
)

// benchReport is a report of round numbers.
var benchReport = Report{
	Machine: Machine{Platform: "linux/amd64", Processor: "Test Processor", Cores: 2, Memory: 24e9, Kernel: "avx512"}, Threads: 2,
	Peak: Pair{One: 200e9, All: 400e9}, Read: Pair{One: 10e9, All: 20e9}, Copy: Pair{One: 30e9, All: 40e9},
	Sgemm: Shares{"256": .5, "512": .9, "1024": .95, "2048": 1}, SgemmOne: Shares{"256": .25, "512": .8, "1024": .85, "2048": .9},
	Products: Shares{"qkv": .5, "head dw": .75}, ProdOne: Shares{"qkv": .25, "head dw": .6},
	Flops: map[string]Pair{"512": {One: 161e9, All: 361e9}, "head dw": {One: 121e9, All: 301e9}}, // measured apart from shares
	Peak8: Pair{One: 800e9, All: 1600e9}, Gemm8: map[string]Pair{"1024": {One: 400e9, All: 400e9}, "2048": {One: 600e9, All: 1200e9}},
	Training: []Training{
		{Model: "nano", Numerics: "exact8", Params: 988544, Batch: 16, Sequence: 128, Tokens: Pair{One: 1234, All: 2345}, Share: Pair{One: .5, All: .6}, Memory: 123e6},
		{Model: "124m", Params: 123456789, Batch: 2, Sequence: 1024, Skipped: "not enough memory: it takes about 3.0 GB, and 1.0 GB are free"},
	},
	Exchange: Exchange{Model: "50m", Params: 50e6, Payloads: 32, PayloadBytes: 136e3,
		Encode: Pair{One: 1e9, All: 2e9}, Check: Pair{One: 3e9, All: 4e9}, Apply: Pair{One: 5e9, All: 6e9}, Hash: Pair{One: 7e9, All: 8e9}},
}

func TestBenchTable(t *testing.T) {
	var out strings.Builder
	if err := benchReport.Write(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"Test Processor, 2 cores, 24.0 GB of memory, kernels avx512",
		"peak, multiply-adds  200.0 GFLOP/s  400.0 GFLOP/s",
		"peak, products of bytes  800.0 GOP/s  1600.0 GOP/s",
		"gemm in 8 bits 1024  400.0 GOP/s  50.0 %  400.0 GOP/s  25.0 %",
		"memory, copy  30.00 GB/s  40.00 GB/s",
		"sgemm 512  161.0 GFLOP/s  80.0 %  361.0 GFLOP/s  90.0 %",
		"product head dw  121.0 GFLOP/s  60.0 %  301.0 GFLOP/s  75.0 %",
		"nano exact8, 988,544 weights, 16 x 128  1,234  50.0 %  2,345  60.0 %  123.0 MB",
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

// containsFields reports whether a line of text has the words of want, whatever the space between them.
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
	if err := benchReport.Write(failingWriter{full}); !errors.Is(err, full) {
		t.Errorf("error is %v", err)
	}
}

type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }
