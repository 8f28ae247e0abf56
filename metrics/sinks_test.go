package metrics

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/event"
	"github.com/entrain-network/entrain/runlog"
)

// steps are the records of two steps of a run with three members and an evaluation, one second each.
func steps() []runlog.Record {
	at := func(s int) time.Time { return time.Unix(1_000_000_000+int64(s), 0).UTC() }
	var list []runlog.Record
	add := func(s int, ev event.Event) { list = append(list, runlog.Record{Time: at(s), Event: ev}) }
	state := func(s int, step uint32) {
		list = append(list, runlog.Record{Time: at(s), Standing: &runlog.Standing{Head: runlog.Head{ID: "x", Epoch: 1, Round: coordinator.Round(step), Step: coordinator.Step(step), SeqTokens: 10, Present: 3, Points: uint64(step-1) * 6},
			Rounds: []runlog.Round{{Number: coordinator.Round(step), Step: coordinator.Step(step)}}}})
		add(s, event.State{Points: uint64(step-1) * 2})
	}
	add(0, event.Peers{Connected: 2, Known: 3})
	for step := range uint32(2) {
		s := int(step)
		state(s, step+1)
		add(s, event.Trained{Round: coordinator.Round(step) + 1, Step: coordinator.Step(step) + 1, Loss: 4, LR: 0.5, GradNorm: 1.25, Tokens: 20, Seconds: 0.5, Bytes: 100, PeakShare: 0.25})
		add(s, event.Committed{Round: coordinator.Round(step) + 1, Member: 1, Loss: 5})
		add(s, event.Committed{Round: coordinator.Round(step) + 2, Member: 2, Loss: 9}) // of the round to come
		add(s, event.Fetched{Round: coordinator.Round(step) + 1, Member: 1, Bytes: 300, Seconds: 0.1})
		add(s+1, event.Applied{Round: coordinator.Round(step) + 2, Step: coordinator.Step(step) + 1, Results: 3})
	}
	add(2, event.Evaluated{Step: 2, HeldOut: 4.5})
	add(2, event.Scored{Step: 2, Task: "piqa", Items: 8, Acc: 0.5, AccNorm: 0.75})
	add(2, event.Sample{Step: 2, Prompt: "a", Text: "b"})
	list = append(list, runlog.Record{Time: at(3), Who: "another", Event: event.Applied{Step: 9}})
	return list
}

func TestMetricsAreOneObjectAStep(t *testing.T) {
	path := filepath.Join(t.TempDir(), "metrics.jsonl")
	if err := os.WriteFile(path, []byte("{\"step\":0}\n{\"step\":1,\"train/lo"), 0o644); err != nil { // as a crash leaves it
		t.Fatal(err)
	}
	j, err := NewJSONLines(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range steps() {
		if err := j.Record(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Join([]string{
		`{"step":0}`,
		`{"step":1,"time":"2001-09-09T01:46:41Z","train/loss":4.5,"train/loss_own":4,"train/lr":0.5,"train/grad_norm":1.25,"perf/tokens_per_sec":40,"perf/flops_share":0.25,"net/payload_bytes":100,` +
			`"train/results":3,"net/fetched_bytes":300,"net/peers":2,"net/peers_known":3,"run/tokens":0,"run/round":1,"run/epoch":1,"run/members":3,"run/points":0}`,
		`{"step":2,"time":"2001-09-09T01:46:42Z","train/loss":5,"train/loss_own":4,"train/lr":0.5,"train/grad_norm":1.25,"perf/tokens_per_sec":40,"perf/flops_share":0.25,"net/payload_bytes":100,` +
			`"train/results":3,"perf/step_seconds":1,"perf/network_tokens_per_sec":60,"net/fetched_bytes":300,"net/peers":2,"net/peers_known":3,"run/tokens":60,"run/round":2,"run/epoch":1,"run/members":3,"run/points":2}`,
		`{"step":2,"time":"2001-09-09T01:46:42Z","eval/heldout_loss":4.5,"run/tokens":60}`,
		`{"step":2,"time":"2001-09-09T01:46:42Z","eval/piqa/acc":0.5,"eval/piqa/acc_norm":0.75,"run/tokens":60}`,
		``}, "\n")
	if string(b) != want {
		t.Errorf("got\n%s\nwant\n%s", b, want)
	}
	for line := range strings.Lines(string(b)) {
		if err := json.Unmarshal([]byte(line), &map[string]any{}); err != nil {
			t.Errorf("%q: %v", line, err)
		}
	}
}

// The first bytes of every event file of TensorFlow: a record of 24 bytes, whose length's masked checksum is a3 7f 4b 22.
func TestMaskedChecksumIsTensorFlows(t *testing.T) {
	got := appendTFRecord(nil, make([]byte, 24))[:12]
	if want := []byte{24, 0, 0, 0, 0, 0, 0, 0, 0xa3, 0x7f, 0x4b, 0x22}; !bytes.Equal(got, want) {
		t.Errorf("got % x, want % x", got, want)
	}
}

// eventFile writes the steps for TensorBoard and returns the directory.
func eventFile(t *testing.T) string {
	dir := t.TempDir()
	tb, err := NewTensorBoard(dir, time.Unix(1_000_000_000, 5))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range steps() {
		if err := tb.Record(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := tb.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestEventFilesAreFramed(t *testing.T) {
	dir := eventFile(t)
	b, err := os.ReadFile(filepath.Join(dir, "events.out.tfevents.1000000000.000000005.entrain"))
	if err != nil {
		t.Fatal(err)
	}
	records := 0
	for ; len(b) > 0; records++ {
		n := binary.LittleEndian.Uint64(b)
		data := b[12 : 12+n]
		if binary.LittleEndian.Uint32(b[8:]) != maskedCRC(b[:8]) || binary.LittleEndian.Uint32(b[12+n:]) != maskedCRC(data) {
			t.Fatalf("record %d has a wrong checksum", records)
		}
		b = b[16+n:]
	}
	if records != 5 {
		t.Errorf("%d records, want the version, two steps, an evaluation and a task", records)
	}
}

// reader prints what TensorBoard's own reader finds in a directory.
const reader = `
import json, sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
a = EventAccumulator(sys.argv[1])
a.Reload()
print(json.dumps({tag: [[e.step, e.wall_time, e.value] for e in a.Scalars(tag)] for tag in a.Tags()["scalars"]}))
`

func TestTensorBoardReadsTheEvents(t *testing.T) {
	t.Parallel()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not here: the event file is not checked against TensorBoard's own reader")
	}
	if err := exec.Command(python, "-c", "import importlib.util as u; assert u.find_spec('tensorboard')").Run(); err != nil {
		t.Skip("python3 has no tensorboard (pip install tensorboard): the event file is not checked against its reader")
	}
	out, err := exec.Command(python, "-c", reader, eventFile(t)).Output()
	if err != nil {
		t.Fatal(err)
	}
	var got map[string][][3]float64
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	want := map[string][][3]float64{
		"train/loss":        {{1, 1_000_000_001, 4.5}, {2, 1_000_000_002, 5}},
		"train/lr":          {{1, 1_000_000_001, 0.5}, {2, 1_000_000_002, 0.5}},
		"eval/heldout_loss": {{2, 1_000_000_002, 4.5}},
		"eval/piqa/acc":     {{2, 1_000_000_002, 0.5}},
		"perf/flops_share":  {{1, 1_000_000_001, 0.25}, {2, 1_000_000_002, 0.25}},
	}
	for tag, values := range want {
		if len(got[tag]) != len(values) {
			t.Errorf("%s: got %v, want %v", tag, got[tag], values)
			continue
		}
		for i, v := range values {
			if got[tag][i] != v {
				t.Errorf("%s: value %d is %v, want %v", tag, i, got[tag][i], v)
			}
		}
	}
}

// offlineRun writes the steps for Weights & Biases and returns the directory of the run.
func offlineRun(t *testing.T) string {
	dir := t.TempDir()
	w, err := NewWandB(dir, "opticks", map[string]string{"chain": "newton"}, time.Unix(1_000_000_000, 5))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range steps() {
		if err := w.Record(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	runs, err := filepath.Glob(filepath.Join(dir, "offline-run-20010909_014640-????????"))
	if err != nil || len(runs) != 1 {
		t.Fatalf("%v, %v", runs, err)
	}
	return runs[0]
}

// A record that does not fit into a block is cut into pieces, whose heads and checksums are those of LevelDB's log.
func TestOfflineRunsAreFramed(t *testing.T) {
	w, err := NewWandB(t.TempDir(), "opticks", nil, time.Unix(1, 0))
	if err != nil {
		t.Fatal(err)
	}
	w.summary = []byte{} // a run of which nothing was measured leaves nothing
	var want [][]byte
	for _, n := range []int{10, wandBBlock, 3*wandBBlock - 5, 1} { // the second ends within seven bytes of a block's end, or not
		body := bytes.Repeat([]byte{byte(n)}, n)
		want = append(want, body)
		w.record(4, body)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(w.file.Name())
	if err != nil {
		t.Fatal(err)
	}
	var records [][]byte
	for at, kind := 7, byte(4); at < len(b); {
		if left := wandBBlock - at%wandBBlock; left < wandBHeader {
			at += left
			continue
		}
		n := int(binary.LittleEndian.Uint16(b[at+4:]))
		typed := b[at+6 : at+wandBHeader+n]
		if binary.LittleEndian.Uint32(b[at:]) != crc32.ChecksumIEEE(typed) {
			t.Fatalf("wrong checksum at byte %d", at)
		}
		if begins := typed[0] < 3; begins != (kind == 1 || kind == 4) {
			t.Fatalf("a piece of kind %d follows one of kind %d", typed[0], kind)
		}
		if kind = typed[0]; kind < 3 {
			records = append(records, nil)
		}
		records[len(records)-1] = append(records[len(records)-1], typed[1:]...)
		at += wandBHeader + n
	}
	if len(records) != 4+len(want) {
		t.Fatalf("%d records", len(records))
	}
	for i, body := range want {
		if !bytes.HasSuffix(records[2+i], body) {
			t.Errorf("record %d came back as another", 2+i)
		}
	}
}

func TestAStartThatMeasuresNothingLeavesNoRun(t *testing.T) {
	dir := t.TempDir()
	w, err := NewWandB(dir, "opticks", nil, time.Unix(1, 0))
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
}

// cloud stands in for the server of Weights & Biases: it takes whatever `wandb sync` uploads.
func cloud(t *testing.T) (url string, history func() []map[string]float64) {
	var mu sync.Mutex
	var lines []map[string]float64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		if r.Header.Get("Content-Encoding") == "gzip" {
			if z, err := gzip.NewReader(bytes.NewReader(b)); err == nil {
				b, _ = io.ReadAll(z)
			}
		}
		answer := `{}`
		switch {
		case strings.HasSuffix(r.URL.Path, "/file_stream"):
			var sent struct {
				Files map[string]struct{ Content []string }
			}
			if err := json.Unmarshal(b, &sent); err != nil {
				t.Errorf("%s: %v", b, err)
			}
			for _, l := range sent.Files["wandb-history.jsonl"].Content {
				var line map[string]float64
				if err := json.Unmarshal([]byte(l), &line); err != nil {
					t.Errorf("%s: %v", l, err)
				}
				mu.Lock()
				lines = append(lines, line)
				mu.Unlock()
			}
		case bytes.Contains(b, []byte("upsertBucket")):
			answer = `{"data":{"upsertBucket":{"inserted":true,"bucket":{"id":"x","name":"x","displayName":"x","config":"{}","historyLineCount":0,
				"project":{"id":"p","name":"entrain","entity":{"id":"e","name":"me"}}}}}}`
		case bytes.Contains(b, []byte("createRunFiles")):
			answer = `{"data":{"createRunFiles":{"runID":"x","uploadHeaders":[],"files":[]}}}`
		case strings.HasSuffix(r.URL.Path, "/graphql"):
			answer = `{"data":{"viewer":{"id":"v","entity":"me","username":"me","flags":"{}","teams":{"edges":[]}},"serverInfo":{},"model":{"bucket":null}}}`
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(s.Close)
	return s.URL, func() []map[string]float64 {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(lines)
	}
}

func TestWandBSyncsTheRun(t *testing.T) {
	t.Parallel()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not here: the offline run is not checked with wandb")
	}
	if err := exec.Command(python, "-c", "import importlib.util as u; assert u.find_spec('wandb')").Run(); err != nil {
		t.Skip("python3 has no wandb (pip install wandb): the offline run is not checked with it")
	}
	url, history := cloud(t)
	sync := func(dir, want string) {
		t.Helper()
		cmd := exec.Command(python, "-m", "wandb", "sync", dir)
		cmd.Dir = t.TempDir()
		cmd.Env = append(os.Environ(), "WANDB_BASE_URL="+url, "WANDB_API_KEY="+strings.Repeat("a", 40), "HOME="+t.TempDir())
		if out, err := cmd.CombinedOutput(); err != nil || !bytes.Contains(out, []byte(want)) {
			t.Fatalf("wandb sync: %v\n%s", err, out)
		}
	}
	sync(offlineRun(t), "Finished syncing")
	want := []map[string]float64{
		{"_step": 1, "train/loss": 4.5, "train/lr": 0.5, "perf/flops_share": 0.25},
		{"_step": 2, "train/loss": 5, "eval/heldout_loss": 4.5, "eval/piqa/acc": 0.5},
	}
	got := history()
	if len(got) != len(want) {
		t.Fatalf("%d lines of history came: %v", len(got), got)
	}
	for i, line := range want {
		for key, v := range line {
			if got[i][key] != v {
				t.Errorf("step %d: %s is %v, want %v", i+1, key, got[i][key], v)
			}
		}
	}
	// A participant that was killed leaves a record cut short: what is before it comes.
	dir := offlineRun(t)
	runs, _ := filepath.Glob(filepath.Join(dir, "*.wandb"))
	b, err := os.ReadFile(runs[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(runs[0], b[:len(b)-600], 0o644); err != nil {
		t.Fatal(err)
	}
	sync(dir, "incomplete record")
	if n := len(history()) - len(got); n != 1 {
		t.Errorf("of a file cut short in its second step, %d lines came", n)
	}
}

// BenchmarkBytes prints what a step of a run with checks adds to the file of each sink.
func BenchmarkBytes(b *testing.B) {
	begin := map[string]func(dir string) (runlog.Sink, error){
		"jsonl":       func(dir string) (runlog.Sink, error) { return NewJSONLines(filepath.Join(dir, "metrics.jsonl")) },
		"tensorboard": func(dir string) (runlog.Sink, error) { return NewTensorBoard(dir, time.Unix(1, 0)) },
		"wandb":       func(dir string) (runlog.Sink, error) { return NewWandB(dir, "run", nil, time.Unix(1, 0)) },
	}
	for name, begin := range begin {
		b.Run(name, func(b *testing.B) {
			dir, step := b.TempDir(), coordinator.Step(0)
			sink, err := begin(dir)
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				step++
				standing := runlog.Standing{Head: runlog.Head{ID: "x", Epoch: 1, Round: coordinator.Round(step), Step: step, SeqTokens: 2048, Present: 128, Points: 512 * uint64(step)},
					Rounds: []runlog.Round{{Number: coordinator.Round(step), Step: step}}, Trust: &runlog.Trust{TrustHead: runlog.TrustHead{Drawn: uint32(step), Passed: uint32(step)}}}
				for _, ev := range []event.Event{
					event.Trained{Round: coordinator.Round(step), Step: step, Loss: 3.1415927, LR: 4e-4, GradNorm: 1.2345678, Tokens: 8192, Seconds: 12.345678, Bytes: 987654, PeakShare: 0.34567},
					event.Applied{Round: coordinator.Round(step) + 1, Step: step, Results: 128},
				} {
					if err := sink.Record(runlog.Record{Time: time.Unix(1_000_000_000+30*int64(step), 123456789), Standing: &standing, Event: ev}); err != nil {
						b.Fatal(err)
					}
				}
			}
			if err := sink.Close(); err != nil {
				b.Fatal(err)
			}
			var bytes int64
			err = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
				if err == nil && !d.IsDir() {
					var info os.FileInfo
					info, err = d.Info()
					bytes += info.Size()
				}
				return err
			})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(bytes)/float64(step), "B/step")
		})
	}
}
