package bittensor

import (
	"cmp"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/cloudflare/circl/ecc/bls12381"
)

// Quicknet is drand's beacon of one signature every three seconds. The signature of a round opens
// what was encrypted for it. See
// https://api.drand.sh/52db9ba70e0cc0f6eaf7803dd07447a1f5477735fd3f661792ba94600c84e971/info.
const (
	quicknetStart  = 1692803367 // Unix time, in seconds
	quicknetPeriod = 3          // seconds
	quicknetDomain = "BLS_SIG_BLS12381G1_XMD:SHA-256_SSWU_RO_NUL_"
	quicknetKey    = "83cf0f2896adee7eb8b5f01fcad3912212c437e0073e911fb90022d3e760183c8c4b450b6a0a6c3ac6a5776a2d106451" +
		"0d1fec758c921cc22b0e17e63aaf4bcb5ed66304de9cf809bd274ca73bab4af5a6e9c76a4bc09e76eae8991ef5ece45a"
)

// timelock encrypts a message for a round of quicknet: the round's signature opens it. The format
// is that of Bittensor's chain, after https://github.com/ideal-lab5/timelock: the key of an AES-GCM
// ciphertext, encrypted to the round by the FullIdent of Boneh and Franklin.
func timelock(msg []byte, round uint64, random io.Reader) ([]byte, error) {
	var secret struct {
		sigma, key [32]byte
		nonce      [12]byte
	}
	for _, b := range [][]byte{secret.sigma[:], secret.key[:], secret.nonce[:]} {
		if _, err := io.ReadFull(random, b); err != nil {
			return nil, err
		}
	}
	text, err := hex.DecodeString(quicknetKey)
	if err != nil {
		return nil, err
	}
	var network, u bls12381.G2
	if err := network.SetBytes(text); err != nil {
		return nil, err
	}
	r := blind(secret.sigma, secret.key)
	u.ScalarMult(&r, bls12381.G2Generator())
	id := identity(round)
	id.ScalarMult(&r, id)
	mask, err := maskOf(id, &network)
	if err != nil {
		return nil, err
	}
	pad := sha256.Sum256(secret.sigma[:])
	gcm, err := newGCM(secret.key)
	if err != nil {
		return nil, err
	}
	body := appendList(nil, gcm.Seal(nil, secret.nonce[:], msg, nil))
	body = appendList(body, secret.nonce[:])
	out := appendList(u.BytesCompressed(), xor(secret.sigma, mask))
	out = appendList(out, xor(secret.key, pad))
	return appendList(appendList(out, body), []byte("AES_GCM_")), nil
}

// identity returns the point of a round, which the network multiplies by its secret to sign it.
func identity(round uint64) *bls12381.G1 {
	sum := sha256.Sum256(binary.BigEndian.AppendUint64(nil, round))
	var p bls12381.G1
	p.Hash(sum[:], []byte(quicknetDomain))
	return &p
}

// blind returns the scalar of a ciphertext.
func blind(sigma, key [32]byte) (r bls12381.Scalar) {
	sum := sha256.Sum256(append(sigma[:], key[:]...))
	r.SetBytes(sum[:])
	return r
}

// maskOf returns the hash of a pairing. It is over the bytes from the least one on.
func maskOf(p *bls12381.G1, q *bls12381.G2) ([32]byte, error) {
	b, err := bls12381.Pair(p, q).MarshalBinary()
	slices.Reverse(b)
	return sha256.Sum256(b), err
}

func newGCM(key [32]byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key[:])
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

func xor(a, b [32]byte) []byte {
	subtle.XORBytes(a[:], a[:], b[:])
	return a[:]
}

// appendList encodes bytes as ark-serialize does.
func appendList(dst, v []byte) []byte {
	return append(binary.LittleEndian.AppendUint64(dst, uint64(len(v))), v...)
}

const (
	// blockTime is how often the chain makes a block.
	blockTime = 12 * time.Second
	// tempoMax is the most blocks that an epoch can have, and blocksMax the most until weights are
	// shown: the chain allows 100 epochs.
	tempoMax  = 50400
	blocksMax = 102 * tempoMax
	// settling is how many blocks after its epoch's first one a round comes: nobody reads the weights
	// before. The chain looks for the round in every block of the epoch.
	settling = 3

	// timelockCall takes weights that are encrypted by the rules of timelockVersion. In runtimes with
	// epochItem, an epoch begins where the chain's storage says; in those before it followed from the
	// block's number, as Hide has it.
	timelockCall    = "commit_timelocked_weights"
	timelockVersion = 4
	epochItem       = "LastEpochBlock"
)

// schedule is the state of a subnet's epochs after a block.
type schedule struct {
	height  uint64 // of the block
	last    uint64 // block in which an epoch began
	pending uint64 // block in which the owner has one begin, 0 if none
	idle    uint64 // blocks since an epoch was computed
	tempo   uint64 // blocks of an epoch
}

// shows returns the first block in which the chain shows weights that the next block takes: that
// with which the epoch begins that is period epochs later.
func (e schedule) shows(period uint64) uint64 {
	next := e.height + 1
	begin := max(next, e.last+e.tempo)
	if e.pending > 0 {
		begin = min(begin, max(next, e.pending))
	}
	if e.idle > tempoMax {
		begin = next
	}
	if begin == next { // it takes them in an epoch that begins with it
		begin += e.tempo
	}
	return begin + (max(period, 1)-1)*e.tempo
}

// counts returns why weights, encoded by row, would not count. The chain looks at timelocked
// weights only when it shows them, and drops those that it refuses without a word.
func (s Subnet) counts(ctx context.Context, hotkey Account, row []byte) error {
	uid, registered, err := s.UID(ctx, hotkey)
	if err != nil {
		return err
	}
	why := ""
	list := &reader{b: row[2:]}
	n := list.count()
	if list.u16() == uid && n == 1 { // its own
		n = math.MaxInt
	}
	read := func(name string) *reader {
		r, fault := s.Client.get(ctx, module, name, s.netuid())
		if fault != nil {
			err, r = fault, &reader{}
		}
		return r
	}
	owner := read("SubnetOwnerHotkey").account() == hotkey
	if permits := read("ValidatorPermit").bytes(); n < math.MaxInt && !owner && (int(uid) >= len(permits) || permits[uid] == 0) {
		why = "NeuronNoValidatorPermit"
	}
	if all, least := read("SubnetworkN").u16(), read("MinAllowedWeights").u16(); n < int(min(all, least)) {
		why = "WeightVecLengthIsLow"
	}
	if !registered {
		why = "NotRegistered"
	}
	if err == nil && why != "" {
		err = fmt.Errorf("the chain would not count them: %s", hints[why])
	}
	return err
}

// commitTimelocked encrypts weights, encoded by row, for the round of drand after which they count,
// and sends them. It returns in what time the chain shows them by itself.
func (s Subnet) commitTimelocked(ctx context.Context, hotkey Key, row, version []byte) (time.Duration, error) {
	account := hotkey.Account()
	if err := s.counts(ctx, account, row); err != nil {
		return 0, err
	}
	call, err := s.Client.meta.call(module, timelockCall)
	if err != nil {
		return 0, err
	}
	var at string // one block for all, lest an epoch begins between two answers
	if err := s.Client.call(ctx, &at, "chain_getBlockHash"); err != nil {
		return 0, err
	}
	read := func(size int, pallet, name string, args ...[]byte) uint64 {
		r, fault := s.Client.getAt(ctx, at, pallet, name, args...)
		if fault != nil {
			err = fault
			return 0
		}
		var b [8]byte
		copy(b[:], r.take(size))
		err = cmp.Or(err, r.err)
		return binary.LittleEndian.Uint64(b[:])
	}
	now := read(8, "Timestamp", "Now") / 1000
	e := schedule{
		height:  read(4, "System", "Number"),
		last:    read(8, module, epochItem, s.netuid()),
		pending: read(8, module, "PendingEpochAt", s.netuid()),
		idle:    read(8, module, "BlocksSinceLastStep", s.netuid()),
		tempo:   read(2, module, "Tempo", s.netuid()),
	}
	blocks := e.shows(read(8, module, "RevealPeriodEpochs", s.netuid())) - e.height + settling
	switch {
	case err != nil:
		return 0, err
	case e.tempo == 0:
		return 0, fmt.Errorf("subnet %d has no epochs, so it would never show weights: its tempo is 0", s.NetUID)
	case now < quicknetStart || e.last > e.height || blocks > blocksMax:
		return 0, fmt.Errorf("%s says that it is %v, and that subnet %d, whose epoch began in block %d of %d, shows weights in %d blocks; "+
			"ask another endpoint", s.Client.url, time.Unix(int64(now), 0).UTC(), s.NetUID, e.last, e.height, blocks)
	}
	wait := time.Duration(blocks) * blockTime
	round := (now + uint64(wait/time.Second) - quicknetStart) / quicknetPeriod
	locked, err := timelock(slices.Concat(appendBytes(nil, account[:]), row[2:], version), round, rand.Reader)
	if err != nil {
		return 0, err
	}
	call = appendBytes(append(call, s.netuid()...), locked)
	call = binary.LittleEndian.AppendUint64(call, round)
	return wait, s.Client.submit(ctx, hotkey, binary.LittleEndian.AppendUint16(call, timelockVersion), s.Poll)
}
