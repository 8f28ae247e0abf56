package runlog

import (
	"bytes"
	"fmt"
	"math"
	"reflect"
	"strings"
	"time"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/event"
)

// schema lists what a log holds of each struct: a line for each kind of event and each other type,
// with its fields in the order of the format. New fields go to the end of their line, so that older
// logs remain readable; any other change needs a new version in fileMagic. A log does not have
// fields that are not listed.
const schema = `
state Phase Epoch Round Step Steps Members Status Points Params
loaded Round Params Source
peers Connected Known
trained Epoch Round Step Loss LR GradNorm Tokens Seconds Bytes PeakShare
signed Epoch Round Member Commitment
committed Epoch Round Member Loss Bytes Commitment
fetched Round Member Seconds Bytes
applied Round Step Results Params
evaluated Step HeldOut Params
sample Step Params Prompt Text
scored Step Items Params Task Acc AccNorm
healing Round Bytes Total
healed Round Bytes Params Source
revealed Round Bytes
traffic Round Bytes
tidied Round Objects
checkpoint Epoch Step Params Manifest
refused Text
check Epoch Round Step Member Sequences Text
verdict Epoch Round Step Status Member Sequences Text
dispute Epoch Round Step Stage Member Text
convicted Round Offence Member Slashed Text
note Text
kept Params Path
finished Seconds Params
process Text
Heard Round Step Committed LossSum LossMin LossMax Bytes Fetched Came Seconds
Standing Height TimeMs Head Members Rounds Trust Windows
Head Name ID Chain Own Steps Capacity SeqTokens Overlap MissedMax Phase SinceMs DeadlineMs Epoch Round Step Present Draining Pausing Rollbacks Points Retired Params ParamsRound Saved Start
Saved Epoch Params Manifest By
MemberState Key Status Points Results Missed Idle Speed JoinedMs JoinedEpoch LeftMs LeftRound Stake Balance Settled Claimed Payee Doubt Strikes Skipped Astray Passed FirstRound LastRound ReleaseMs Since Score Scored Unvested Earned SpeedSet
Round Number Epoch Step OpenedMs Batch Seed Agreed Final Attests Quorum Witnesses Active Expected Accepted AcceptedCount Sequences
Witness Member Reported Complete
Trust Whole TrustHead Checks Closed Disputes Ended Convictions
TrustHead Percent Stake Rate Treasury Escrow Verified Drawn Passed Disputed Convicted
Share Round Member
Check Round Epoch Step Member Verifier Sequences DeadlineMs Disputed Reassigned
Dispute ID Check Accused Accuser Unserved Commitment Stage DeadlineMs TieBreakers Defended Traces Level Op Tile Slice Depth Index Nodes Revealed
Commitment Run Epoch Round Member Share Payload PayloadBytes Prev State Work Params Loss
TieVote Member Vote Trace
Conviction Number Round Member Key Offence By ByKey Slashed Evidence FirstRound LastRound Results AtMs
Windows Whole WindowsHead Commits Validators SeatsTold Period
WindowsHead Buckets WindowBlocks DeadlineHeight Window ScoreWindows Current Scoring Stage Emission ValidatorPercent Given Taken
Commits Round Count
Validator Seat Key Payee Stake Balance Earned Trust Since SinceMs
Scores Period First Last Settled Members Validators
MemberScore Member Sequences Scored Score Weight Reward Penalty
ValidatorScores Seat Key Committed Revealed Scores Stake Trust Agreement Reward
Score Member Value
`

// The types of records.
const (
	typeEvent    = 1
	typeStanding = 2
	typeHeard    = 3
)

// codec encodes and decodes the records of one file. It remembers the members and the head of
// earlier records: of these only changes are written.
type codec struct {
	members []coordinator.MemberState
	head    Head
	plans   map[reflect.Type][]int  // indexes of a struct's fields, in the order of the schema
	kinds   map[string]reflect.Type // of events
}

// append appends the encoding of a record.
func (c *codec) append(dst []byte, r Record) []byte {
	p := pen{b: dst}
	head := func(kind uint8) {
		p.u8(kind)
		p.uint(uint64(max(0, r.Time.UnixMicro())))
		p.text(r.Who)
	}
	switch {
	case r.Standing != nil:
		head(typeStanding)
		c.put(&p, reflect.ValueOf(r.Standing).Elem(), reflect.Value{})
	case r.Heard != nil:
		head(typeHeard)
		c.put(&p, reflect.ValueOf(r.Heard).Elem(), reflect.Value{})
	default:
		head(typeEvent)
		p.text(r.Event.Kind())
		if t := c.event(r.Event.Kind()); t != nil {
			v := reflect.New(t).Elem() // addressable
			v.Set(reflect.ValueOf(r.Event))
			c.put(&p, v, reflect.Value{})
		}
	}
	return p.b
}

// parse reads a record.
func (c *codec) parse(b []byte) (Record, error) {
	e := eye{b: b}
	kind := e.u8()
	r := Record{Time: time.UnixMicro(int64(e.uint(math.MaxInt64))).UTC(), Who: e.text()}
	switch kind {
	case typeEvent:
		name := e.text()
		if t := c.event(name); t != nil {
			v := reflect.New(t).Elem()
			c.get(&e, v, reflect.Value{})
			r.Event = v.Interface().(event.Event)
		} else {
			r.Event = event.Other{Name: name}
		}
	case typeStanding:
		r.Standing = new(Standing)
		c.get(&e, reflect.ValueOf(r.Standing).Elem(), reflect.Value{})
	case typeHeard:
		r.Heard = new(Heard)
		c.get(&e, reflect.ValueOf(r.Heard).Elem(), reflect.Value{})
	default:
		e.fail()
	}
	if e.bad || len(e.b) > 0 {
		return Record{}, errFormat
	}
	return r, nil
}

// event returns the type of the events of a kind, nil if there is none.
func (c *codec) event(kind string) reflect.Type {
	if c.kinds == nil {
		c.kinds = make(map[string]reflect.Type)
		for _, ev := range event.All() {
			c.kinds[ev.Kind()] = reflect.TypeOf(ev)
		}
	}
	return c.kinds[kind]
}

// plan returns the indexes of the fields of a struct that a log holds.
func (c *codec) plan(t reflect.Type) []int {
	if plan, ok := c.plans[t]; ok {
		return plan
	}
	if c.plans == nil {
		c.plans = make(map[reflect.Type][]int)
	}
	name := t.Name()
	if ev, ok := reflect.Zero(t).Interface().(event.Event); ok {
		name = ev.Kind()
	}
	_, line, ok := strings.Cut(schema, "\n"+name+" ")
	if !ok {
		panic("runlog: the schema has no line for " + t.String())
	}
	line, _, _ = strings.Cut(line, "\n")
	var plan []int
	for name := range strings.FieldsSeq(line) {
		f, ok := t.FieldByName(name)
		if !ok || len(f.Index) != 1 {
			panic(fmt.Sprintf("runlog: the schema names %s.%s, which does not exist", t, name))
		}
		plan = append(plan, f.Index[0])
	}
	c.plans[t] = plan
	return plan
}

// known returns the row of a member that readers have.
func (c *codec) known(i uint32) reflect.Value {
	for uint32(len(c.members)) <= i {
		c.members = append(c.members, coordinator.MemberState{})
	}
	return reflect.ValueOf(&c.members[i]).Elem()
}

// put writes an addressable value. Base is the value of the same type that readers have already;
// the invalid one stands for zero. Of a struct it writes a mask of the fields that differ from
// those of base, and these.
func (c *codec) put(p *pen, v, base reflect.Value) {
	switch x := v.Addr().Interface().(type) {
	case *string:
		p.text(*x)
		return
	case *float32:
		p.f32(*x)
		return
	case *float64:
		p.f64(*x)
		return
	case *Set:
		p.set(*x)
		return
	case *Head:
		base = reflect.ValueOf(&c.head).Elem()
	case *Member:
		p.uint(uint64(x.Index))
		known := c.known(x.Index)
		c.put(p, v.Field(1), known)
		known.Set(v.Field(1))
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		p.bool(v.Bool())
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		p.uint(v.Uint())
	case reflect.Int16:
		p.i16(int16(v.Int()))
	case reflect.Int:
		p.uint(uint64(max(0, v.Int())))
	case reflect.Array:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			p.b = append(p.b, v.Bytes()...)
			return
		}
		for i := range v.Len() {
			c.put(p, v.Index(i), reflect.Value{})
		}
	case reflect.Slice:
		p.uint(uint64(v.Len()))
		for i := range v.Len() {
			c.put(p, v.Index(i), reflect.Value{})
		}
	case reflect.Pointer:
		c.put(p, v.Elem(), reflect.Value{})
	case reflect.Struct:
		plan := c.plan(v.Type())
		var mask uint64
		for i, f := range plan {
			if !same(v.Field(f), field(base, f)) {
				mask |= 1 << i
			}
		}
		p.uint(mask)
		for i, f := range plan {
			if mask>>i&1 == 1 {
				c.put(p, v.Field(f), field(base, f))
			}
		}
		if v.Type() == reflect.TypeFor[Head]() {
			c.head = v.Interface().(Head)
		}
	default:
		panic("runlog: the format has no " + v.Type().String())
	}
}

// get reads what put wrote into a zero value.
func (c *codec) get(e *eye, v, base reflect.Value) {
	switch x := v.Addr().Interface().(type) {
	case *string:
		*x = e.text()
		return
	case *float32:
		*x = e.f32()
		return
	case *float64:
		*x = e.f64()
		return
	case *Set:
		*x = e.set()
		return
	case *Head:
		base = reflect.ValueOf(&c.head).Elem()
	case *Member:
		x.Index = uint32(e.uint(membersMax - 1))
		known := c.known(x.Index)
		c.get(e, v.Field(1), known)
		if !e.bad {
			known.Set(v.Field(1))
		}
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(e.bool())
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(e.uint(1<<v.Type().Bits() - 1))
	case reflect.Int16:
		v.SetInt(int64(e.i16()))
	case reflect.Int:
		v.SetInt(int64(e.uint(math.MaxInt32)))
	case reflect.Array:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			copy(v.Bytes(), e.take(uint64(v.Len())))
			return
		}
		for i := range v.Len() {
			c.get(e, v.Index(i), reflect.Value{})
		}
	case reflect.Slice:
		for i := range int(e.uint(rowsMax(v.Type().Elem()))) {
			v.Grow(1)
			v.SetLen(i + 1)
			if c.get(e, v.Index(i), reflect.Value{}); e.bad {
				return
			}
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		c.get(e, v.Elem(), reflect.Value{})
	case reflect.Struct:
		c.getFields(e, v, base)
	}
}

// getFields reads the fields of a struct that differ from those of base.
func (c *codec) getFields(e *eye, v, base reflect.Value) {
	plan := c.plan(v.Type())
	if base.IsValid() {
		v.Set(base)
	}
	mask := e.uint(1<<len(plan) - 1)
	for i, f := range plan {
		if mask>>i&1 == 0 {
			continue
		}
		c.get(e, v.Field(f), field(base, f))
		if e.bad || same(v.Field(f), field(base, f)) { // it need not have been written
			e.fail()
			return
		}
	}
	if v.Type() == reflect.TypeFor[Head]() {
		c.head = v.Interface().(Head)
	}
}

// field returns a field of base, the invalid value if base is that.
func field(base reflect.Value, i int) reflect.Value {
	if !base.IsValid() {
		return base
	}
	return base.Field(i)
}

// same reports whether readers have the value v already.
func same(v, base reflect.Value) bool {
	switch {
	case v.Kind() == reflect.Slice:
		return v.Len() == 0
	case v.Kind() == reflect.Int:
		return v.Int() <= 0
	case !base.IsValid():
		return v.IsZero()
	case v.Kind() == reflect.Array:
		return bytes.Equal(v.Bytes(), base.Bytes())
	}
	return v.Equal(base)
}

// rowsMax bounds the elements of a slice, by their type: the coordinator's own limits.
func rowsMax(t reflect.Type) uint64 {
	switch t.Name() {
	case "Round":
		return roundsMax
	case "Witness":
		return witnessesMax
	case "Check":
		return checksMax
	case "Dispute":
		return disputesMax
	case "TieVote":
		return votesMax
	case "Conviction":
		return convictionsMax
	case "Validator", "ValidatorScores":
		return seatsMax
	}
	return membersMax
}
