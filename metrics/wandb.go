package metrics

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/prng"
	"github.com/entrain-network/entrain/runlog"
	"github.com/entrain-network/entrain/wire"
)

// WandB is a sink that writes an offline run of Weights & Biases, with the names of [Scalar]: the
// directory that `wandb sync` uploads.
//
// The file in it begins with ":W&B", the bytes E1 BE and a version, 0. Then come blocks of 32 KiB
// as in LevelDB's log, which hold the pieces of records:
//
//	u32 CRC-32 of type and piece | u16 length | u8 type: 1 whole, 2 first, 3 middle, 4 last | piece
//
// A record is a Record of wandb/proto/wandb_internal.proto:
//
//	Record   1 int64 num | 2 History | 3 Summary | 17 Run | 18 Exit | 21 Header
//	History  1 Item, repeated | 2 Step: 1 int64 num
//	Summary  1 Item, repeated
//	Item     2 string nested_key | 16 string value_json
//	Run      1 id | 3 project | 4 Config | 6 group | 8 name | 17 Timestamp: 1 seconds | 2 nanos
//	Config   1 Update, repeated: 1 string key | 16 string value_json
//	Exit     1 int32 code | 2 int32 seconds
//	Header   1 Version: 1 string producer | 2 string min_consumer
type WandB struct {
	file   *os.File
	out    *bufio.Writer
	offset int // in the file
	number uint64
	meter  Meter
	began  time.Time

	// What is measured of the step that runs: a step must be written once.
	step   coordinator.Step
	at     time.Time
	values []Scalar

	summary []byte // the newest values; written last
}

// wandBBlock and wandBHeader are the bytes of a block, and of the head of a piece.
const wandBBlock, wandBHeader = 32 << 10, 7

// NewWandB begins an offline run below dir. Each start of a participant is a run of its own, in the
// group with the run's name; config tells what is trained.
func NewWandB(dir, run string, config map[string]string, now time.Time) (*WandB, error) {
	const letters = "abcdefghijklmnopqrstuvwxyz0123456789"
	var seed [8]byte
	binary.LittleEndian.PutUint64(seed[:], uint64(now.UnixNano()))
	chance := prng.New(wire.Sum("entrain/wandb", seed[:], []byte(dir)), "id")
	id := make([]byte, 8)
	for i := range id {
		id[i] = letters[chance.Uint64n(uint64(len(letters)))]
	}
	home := filepath.Join(dir, fmt.Sprintf("offline-run-%s-%s", now.UTC().Format("20060102_150405"), id))
	if err := os.MkdirAll(filepath.Join(home, "files"), 0o755); err != nil {
		return nil, fmt.Errorf("wandb: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(home, fmt.Sprintf("run-%s.wandb", id)), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nil, fmt.Errorf("wandb: %w", err)
	}
	w := &WandB{file: f, out: bufio.NewWriter(f), began: now}
	_, err = w.out.WriteString(":W&B\xe1\xbe\x00")
	w.offset = 7
	w.record(21, protoBytes(nil, 1, protoBytes(protoBytes(nil, 1, []byte("entrain")), 2, []byte("0.13.0"))))
	body := protoBytes(protoBytes(nil, 1, id), 3, []byte("entrain"))
	var updates []byte
	for _, key := range sortedKeys(config) {
		updates = protoBytes(updates, 1, protoBytes(protoBytes(nil, 1, []byte(key)), 16, jsonOf(config[key])))
	}
	body = protoBytes(body, 4, updates)
	body = protoBytes(body, 6, []byte(run))
	body = protoBytes(body, 8, []byte(run+" "+now.UTC().Format("2006-01-02 15:04")))
	body = protoBytes(body, 17, protoInt(protoInt(nil, 1, uint64(now.Unix())), 2, uint64(now.Nanosecond())))
	w.record(17, body)
	return w, errors.Join(err, w.Flush())
}

// Record implements runlog.Sink.
func (w *WandB) Record(r runlog.Record) error {
	s, ok := w.meter.Add(r)
	if !ok {
		return nil
	}
	if s.Step > w.step {
		w.history()
		w.step = s.Step
	}
	w.at, w.values = s.Time, append(w.values, s.Values...) // late evaluations are of the step at hand
	return nil
}

// history writes what was measured since the step before.
func (w *WandB) history() {
	if len(w.values) == 0 {
		return
	}
	newest := map[string]float64{"_step": float64(w.step), "_timestamp": seconds(w.at), "_runtime": w.at.Sub(w.began).Seconds()}
	for _, v := range w.values {
		if v.Value-v.Value == 0 { // JSON has neither NaN nor infinities
			newest[v.Name] = v.Value
		}
	}
	var items []byte
	for _, key := range sortedKeys(newest) {
		items = protoBytes(items, 1, protoBytes(protoBytes(nil, 2, []byte(key)), 16, jsonOf(newest[key])))
	}
	w.summary = items
	w.record(2, protoBytes(items, 2, protoInt(nil, 1, uint64(w.step))))
	w.values = w.values[:0]
}

// record appends a record with one field.
func (w *WandB) record(field uint64, body []byte) {
	w.number++
	rest := protoBytes(protoInt(nil, 1, w.number), field, body)
	for first := true; first || len(rest) > 0; first = false {
		if left := wandBBlock - w.offset%wandBBlock; left < wandBHeader {
			w.write(make([]byte, left))
		}
		n := min(len(rest), wandBBlock-w.offset%wandBBlock-wandBHeader)
		kind := byte(3)
		switch last := n == len(rest); {
		case first && last:
			kind = 1
		case first:
			kind = 2
		case last:
			kind = 4
		}
		typed := append([]byte{kind}, rest[:n]...)
		head := binary.LittleEndian.AppendUint32(nil, crc32.ChecksumIEEE(typed))
		w.write(append(binary.LittleEndian.AppendUint16(head, uint16(n)), typed...))
		rest = rest[n:]
	}
}

// write appends bytes; Flush returns the error of out, if there was one.
func (w *WandB) write(b []byte) {
	n, _ := w.out.Write(b)
	w.offset += n
}

// Flush implements runlog.Sink.
func (w *WandB) Flush() error {
	if err := w.out.Flush(); err != nil {
		return fmt.Errorf("wandb: %w", err)
	}
	return nil
}

// Close implements runlog.Sink. A run of which nothing was measured leaves no directory.
func (w *WandB) Close() error {
	w.history()
	if w.summary == nil {
		return errors.Join(w.file.Close(), os.RemoveAll(filepath.Dir(w.file.Name())))
	}
	w.record(3, w.summary)
	w.record(18, protoInt(protoInt(nil, 1, 0), 2, uint64(max(0, math.Ceil(w.at.Sub(w.began).Seconds())))))
	return errors.Join(w.Flush(), w.file.Close())
}

func protoInt(dst []byte, field, v uint64) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(dst, field<<3), v)
}

func jsonOf(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("entrain: a number or a text has no JSON: " + err.Error())
	}
	return b
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
