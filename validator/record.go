package validator

import (
	"errors"

	"github.com/entrain-network/entrain/coordinator"
	scores "github.com/entrain-network/entrain/coordinator/score"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/score"
	"github.com/entrain-network/entrain/wire"
)

// Record is the state that a validator keeps on disk.
type Record struct {
	Run    wire.Hash
	Self   key.Public
	Book   score.Book
	Ballot Ballot
}

// recordMagic begins a record; its last digit is the version of the format.
const recordMagic = "entrain validator 1"

// recordDomain is the domain of a record's checksum.
const recordDomain = "entrain/validator-record"

// Append appends the record's encoding:
//
//	"entrain validator 1" | run | self | book | U32 period | salt |
//	U32 n | n x (U32 member, U16 score) | wire.Sum of all before
func (r Record) Append(dst []byte) []byte {
	start := len(dst)
	dst = append(dst, recordMagic...)
	dst = wire.AppendHash(dst, r.Run)
	dst = append(dst, r.Self[:]...)
	dst = r.Book.Append(dst)
	dst = wire.AppendU32(dst, r.Ballot.Period)
	dst = wire.AppendHash(dst, r.Ballot.Salt)
	dst = wire.AppendU32(dst, uint32(len(r.Ballot.Scores)))
	for _, s := range r.Ballot.Scores {
		dst = wire.AppendU16(wire.AppendU32(dst, uint32(s.Member)), uint16(s.Value))
	}
	return wire.AppendHash(dst, wire.Sum(recordDomain, dst[start:]))
}

// ballotScoreBytes is the length of an encoded score.
const ballotScoreBytes = 4 + 2

// ParseRecord is the inverse of Append.
func ParseRecord(b []byte) (Record, error) {
	if len(b) < len(wire.Hash{}) {
		return Record{}, errors.New("a validator's record is cut off")
	}
	body, sum := b[:len(b)-len(wire.Hash{})], b[len(b)-len(wire.Hash{}):]
	if want := wire.Sum(recordDomain, body); string(want[:]) != string(sum) {
		return Record{}, errors.New("a validator's record is damaged: its checksum does not match")
	}
	r := wire.NewReader(body)
	if string(r.Bytes(len(recordMagic))) != recordMagic {
		return Record{}, errors.New("it is not a validator's record, or one of another version")
	}
	rec := Record{Run: r.Hash()}
	copy(rec.Self[:], r.Bytes(len(rec.Self)))
	rec.Book = score.ReadBook(&r)
	rec.Ballot.Period, rec.Ballot.Salt = r.U32(), r.Hash()
	n := r.U32()
	if n > coordinator.MembersMax {
		r.Fail(wire.ErrTooLong)
	} else if uint64(n)*ballotScoreBytes > uint64(r.Len()) {
		r.Fail(wire.ErrShort)
	}
	if r.Err() == wire.OK {
		for range n {
			rec.Ballot.Scores = append(rec.Ballot.Scores, scores.Score{Member: coordinator.Member(r.U32()), Value: int16(r.U16())})
		}
	}
	if err := r.Done().OrNil(); err != nil {
		return Record{}, err
	}
	return rec, nil
}
