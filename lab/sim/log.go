package sim

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math"
	"strconv"

	"github.com/entrain-network/entrain/event"
)

// appendLine appends the line of an event to the log.
func (p *part) appendLine(dst []byte, e Event) []byte {
	if p.network.cfg.crowded() {
		dst = binary.LittleEndian.AppendUint64(dst, uint64(e.At))
		return p.appendBrief(binary.LittleEndian.AppendUint32(dst, uint32(e.Client)), e.Event)
	}
	dst = append(dst, `{"at":`...)
	dst = append(strconv.AppendInt(dst, int64(e.At), 10), `,"client":`...)
	dst = append(strconv.AppendInt(dst, int64(e.Client), 10), ',')
	return append(p.appendBody(dst, e.Event), '\n')
}

// noted reports whether note takes an event.
func noted(e event.Event) bool {
	switch e.(type) {
	case event.Trained, event.Evaluated, event.Healed:
		return true
	}
	return false
}

// note adds an event to the report, and shows it.
func (n *network) note(e Event) {
	switch ev := e.Event.(type) {
	case event.Trained:
		if n.cfg.kind(e.Client) != "" {
			break
		}
		if n.report.LossFirst == 0 {
			n.report.LossFirst = ev.Loss
		}
		n.report.LossLast = ev.Loss
	case event.Evaluated:
		n.report.HeldOut = ev.HeldOut
	case event.Healed:
		n.report.Heals++
	}
	if n.cfg.Observe != nil {
		n.cfg.Observe(e)
	}
}

// appendBody appends what follows the time and the client in the line of an event. All who learn of
// a state or of a dispute report the same, so that is written once.
func (p *part) appendBody(dst []byte, ev event.Event) []byte {
	var shared any
	switch ev := ev.(type) {
	case event.Fetched:
		if ev.Seconds >= 1e-6 { // else it has another form
			return appendFetched(dst, ev)
		}
	case event.Committed:
		return appendCommitted(dst, ev)
	case event.Dispute:
		shared = ev
	case event.Convicted:
		shared = ev
	case event.State:
		ev.Snapshot = nil
		shared = ev
	}
	if b, known := p.bodies[shared]; known {
		return append(dst, b...)
	}
	b, err := event.Marshal(struct{}{}, ev)
	if err != nil {
		panic("sim: " + err.Error())
	}
	b = b[1:]
	if shared != nil {
		if p.network.cfg.crowded() {
			digest := sha256.Sum256(b)
			b = digest[:]
		}
		if len(p.bodies) >= p.network.common.most {
			clear(p.bodies)
		}
		p.bodies[shared] = b
	}
	return append(dst, b...)
}

// appendBrief appends what tells an event from others. The log of a crowd is hashed and not read,
// and lines as others have them would be a twentieth of its time.
func (p *part) appendBrief(dst []byte, ev event.Event) []byte {
	long, short := binary.LittleEndian.AppendUint64, binary.LittleEndian.AppendUint32
	switch ev := ev.(type) {
	case event.Fetched:
		dst = short(short(append(dst, 'f'), uint32(ev.Round)), uint32(ev.Member))
		if ev.Update {
			dst = append(dst, 'u')
		}
		return long(long(dst, math.Float64bits(ev.Seconds)), ev.Bytes)
	case event.Committed:
		dst = short(short(short(append(dst, 'c'), uint32(ev.Epoch)), uint32(ev.Round)), uint32(ev.Member))
		return append(long(short(dst, math.Float32bits(ev.Loss)), ev.Bytes), ev.Commitment[:]...)
	case event.State:
		dst = append(append(append(dst, 's'), ev.Phase...), ev.Status...)
		dst = short(short(short(short(dst, uint32(ev.Epoch)), uint32(ev.Round)), uint32(ev.Step)), uint32(ev.Steps))
		return append(long(short(dst, uint32(ev.Members)), ev.Points), ev.Params[:]...)
	}
	return p.appendBody(append(dst, 'e'), ev)
}

// appendFetched and appendCommitted do what event.Marshal does, in less time: nearly all events are
// these.
func appendFetched(dst []byte, ev event.Fetched) []byte {
	dst = append(dst, `"event":"fetched"`...)
	dst = appendField(dst, `,"round":`, uint64(ev.Round))
	dst = appendField(dst, `,"member":`, uint64(ev.Member))
	if ev.Update {
		dst = append(dst, `,"update":true`...)
	}
	dst = strconv.AppendFloat(append(dst, `,"seconds":`...), ev.Seconds, 'f', -1, 64)
	dst = appendField(dst, `,"bytes":`, ev.Bytes)
	return append(dst, '}')
}

// appendCommitted writes a loss in thousandths, as commitments have it.
func appendCommitted(dst []byte, ev event.Committed) []byte {
	dst = append(dst, `"event":"committed"`...)
	dst = appendField(dst, `,"epoch":`, uint64(ev.Epoch))
	dst = appendField(dst, `,"round":`, uint64(ev.Round))
	dst = appendField(dst, `,"member":`, uint64(ev.Member))
	if ev.Loss != 0 {
		dst = strconv.AppendFloat(append(dst, `,"loss":`...), float64(ev.Loss), 'f', -1, 32)
	}
	dst = appendField(dst, `,"bytes":`, ev.Bytes)
	if !ev.Commitment.IsZero() {
		dst = append(hex.AppendEncode(append(dst, `,"commitment":"`...), ev.Commitment[:]), '"')
	}
	return append(dst, '}')
}

// appendField appends a number, unless it is 0.
func appendField(dst []byte, name string, value uint64) []byte {
	if value == 0 {
		return dst
	}
	return strconv.AppendUint(append(dst, name...), value, 10)
}
