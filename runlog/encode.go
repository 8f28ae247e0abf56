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
fetched Round Member Seconds Bytes Update
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
WindowsHead Buckets WindowBlocks DeadlineHeight Window ScoreWindows Current Scoring Stage Emission ValidatorPercent Given Taken Bittensor
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
	s := stream{b: dst}
	c.record(&s, &r)
	return s.b
}

// parse reads a record.
func (c *codec) parse(b []byte) (r Record, err error) {
	s := stream{b: b, reading: true}
	if c.record(&s, &r); s.bad || len(s.b) > 0 {
		return Record{}, errFormat
	}
	return r, nil
}

// record writes or reads a record.
func (c *codec) record(s *stream, r *Record) {
	kind := [1]byte{typeEvent}
	switch {
	case r.Standing != nil:
		kind[0] = typeStanding
	case r.Heard != nil:
		kind[0] = typeHeard
	}
	s.bytes(kind[:])
	micros := uint64(max(0, r.Time.UnixMicro()))
	s.uint(&micros, math.MaxInt64)
	s.text(&r.Who)
	if s.reading {
		r.Time = time.UnixMicro(int64(micros)).UTC()
	}
	switch kind[0] {
	case typeEvent:
		c.recordEvent(s, r)
	case typeStanding:
		c.value(s, reflect.ValueOf(&r.Standing).Elem(), reflect.Value{})
	case typeHeard:
		c.value(s, reflect.ValueOf(&r.Heard).Elem(), reflect.Value{})
	default:
		s.fail()
	}
}

// recordEvent writes or reads the event of a record.
func (c *codec) recordEvent(s *stream, r *Record) {
	name := ""
	if !s.reading {
		name = r.Event.Kind()
	}
	s.text(&name)
	t := c.event(name)
	if t == nil {
		r.Event = event.Other{Name: name}
		return
	}
	v := reflect.New(t).Elem() // addressable
	if !s.reading {
		v.Set(reflect.ValueOf(r.Event))
	}
	c.value(s, v, reflect.Value{})
	r.Event = v.Interface().(event.Event)
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
func (c *codec) known(i coordinator.Member) reflect.Value {
	for coordinator.Member(len(c.members)) <= i {
		c.members = append(c.members, coordinator.MemberState{})
	}
	return reflect.ValueOf(&c.members[i]).Elem()
}

// value writes an addressable value, or reads it into a zero one. Base is the value of the same
// type that readers have already; the invalid one stands for zero. Of a struct there is a mask of
// the fields that differ from those of base, and these.
func (c *codec) value(s *stream, v, base reflect.Value) {
	switch x := v.Addr().Interface().(type) {
	case *string:
		s.text(x)
		return
	case *float32, *float64:
		s.float(x)
		return
	case *bool:
		s.bool(x)
		return
	case *int16:
		s.int16(x)
		return
	case *Set:
		s.set(x)
		return
	case *Head:
		c.fields(s, v, reflect.ValueOf(&c.head).Elem())
		c.head = *x
		return
	case *Member:
		i := uint64(x.Index)
		if s.uint(&i, membersMax-1); s.reading {
			x.Index = coordinator.Member(i)
		}
		known := c.known(x.Index)
		if c.value(s, v.Field(1), known); !s.bad {
			known.Set(v.Field(1))
		}
		return
	}
	switch v.Kind() {
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		n := v.Uint()
		if s.uint(&n, 1<<v.Type().Bits()-1); s.reading {
			v.SetUint(n)
		}
	case reflect.Int:
		n := uint64(max(0, v.Int()))
		if s.uint(&n, math.MaxInt32); s.reading {
			v.SetInt(int64(n))
		}
	case reflect.Pointer:
		if s.reading {
			v.Set(reflect.New(v.Type().Elem()))
		}
		c.value(s, v.Elem(), reflect.Value{})
	case reflect.Array, reflect.Slice:
		c.list(s, v)
	case reflect.Struct:
		c.fields(s, v, base)
	default:
		panic("runlog: the format has no " + v.Type().String())
	}
}

// list writes or reads the elements of a list.
func (c *codec) list(s *stream, v reflect.Value) {
	n := uint64(v.Len())
	if v.Kind() == reflect.Slice {
		s.uint(&n, rowsMax(v.Type().Elem()))
	} else if v.Type().Elem().Kind() == reflect.Uint8 {
		s.bytes(v.Bytes())
		return
	}
	for i := range int(n) {
		if i == v.Len() { // it is a slice, and read
			v.Grow(1)
			v.SetLen(i + 1)
		}
		if c.value(s, v.Index(i), reflect.Value{}); s.bad {
			return
		}
	}
}

// fields writes or reads the fields of a struct that differ from those of base.
func (c *codec) fields(s *stream, v, base reflect.Value) {
	plan := c.plan(v.Type())
	var mask uint64
	if s.reading && base.IsValid() {
		v.Set(base)
	}
	for i, f := range plan {
		if !s.reading && !same(v.Field(f), field(base, f)) {
			mask |= 1 << i
		}
	}
	s.uint(&mask, 1<<len(plan)-1)
	for i, f := range plan {
		if mask>>i&1 == 0 {
			continue
		}
		c.value(s, v.Field(f), field(base, f))
		if s.reading && (s.bad || same(v.Field(f), field(base, f))) { // it need not have been written
			s.fail()
			return
		}
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
	case v.CanUint(): // most are, and Equal takes longer
		return v.Uint() == base.Uint()
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
