package sim

import (
	"strconv"

	"github.com/entrain-network/entrain/event"
)

// appendLine appends the line of an event to the log.
func (p *part) appendLine(dst []byte, e Event) []byte {
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
// a commitment or a state report the same, so that is written once.
func (p *part) appendBody(dst []byte, ev event.Event) []byte {
	var shared any
	switch ev := ev.(type) {
	case event.Fetched:
		if ev.Seconds >= 1e-6 { // else it has another form
			return appendFetched(dst, ev)
		}
	case event.Committed:
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
		if len(p.bodies) >= p.network.common.most {
			clear(p.bodies)
		}
		p.bodies[shared] = b
	}
	return append(dst, b...)
}

// appendFetched does what event.Marshal does, in less time: most events are these.
func appendFetched(dst []byte, ev event.Fetched) []byte {
	field := func(name string, value uint64) {
		if value != 0 {
			dst = strconv.AppendUint(append(dst, name...), value, 10)
		}
	}
	dst = append(dst, `"event":"fetched"`...)
	field(`,"round":`, uint64(ev.Round))
	field(`,"member":`, uint64(ev.Member))
	if ev.Update {
		dst = append(dst, `,"update":true`...)
	}
	dst = strconv.AppendFloat(append(dst, `,"seconds":`...), ev.Seconds, 'f', -1, 64)
	field(`,"bytes":`, ev.Bytes)
	return append(dst, '}')
}
