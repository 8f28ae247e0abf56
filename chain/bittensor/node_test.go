package bittensor

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/oasisprotocol/curve25519-voi/primitives/sr25519"
	"golang.org/x/crypto/blake2b"
)

// description builds metadata as a runtime would.
type description struct {
	types [][]byte
}

func str(s string) []byte { return appendBytes(nil, []byte(s)) }

func list(parts ...[]byte) []byte {
	return append(appendCompact(nil, uint64(len(parts))), bytes.Join(parts, nil)...)
}

func cat(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

func num(v uint64) []byte { return appendCompact(nil, v) }

// add appends a type without parameters and returns its number.
func (d *description) add(path string, def ...[]byte) uint64 {
	return d.addWith(path, list(), def...)
}

func (d *description) addWith(path string, params []byte, def ...[]byte) uint64 {
	id := uint64(len(d.types))
	p := list()
	if path != "" {
		p = list(str("some"), str(path))
	}
	d.types = append(d.types, cat(num(id), p, params, cat(def...), list()))
	return id
}

func field(id uint64) []byte { return cat([]byte{0}, num(id), []byte{0}, list()) }

// choice is an option of a variant: a name, a number and the types of its fields.
func choice(name string, index byte, fields ...uint64) []byte {
	var f [][]byte
	for _, id := range fields {
		f = append(f, field(id))
	}
	return cat(str(name), list(f...), []byte{index}, list())
}

// item is an item of a pallet's storage with the hashers of its keys.
func storageItem(name string, value uint64, byDefault []byte, hashers ...byte) []byte {
	kind := cat([]byte{0}, num(value))
	if len(hashers) > 0 {
		kind = cat([]byte{1}, appendBytes(nil, hashers), num(0), num(value))
	}
	return cat(str(name), []byte{1}, kind, appendBytes(nil, byDefault), list())
}

func palletOf(name string, index byte, items []byte, calls, errors []byte) []byte {
	return cat(str(name), []byte{1}, str(name), items, calls, []byte{0}, list(), errors, []byte{index})
}

func some(id uint64) []byte { return append([]byte{1}, num(id)...) }

// The numbers of the test runtime's errors and calls.
const (
	callSetWeights, callRegister, callCommit = 3, 7, 5
	callHide, callShow, callTimelock         = 96, 97, 113
	errTooFast, errNotRegistered             = 9, 11
	errTooEarly, errVersion                  = 12, 13
)

// runtime describes a runtime whose transactions also carry the extension of the given name, of two bytes. One with timelocks takes
// encrypted weights, and shows them by itself.
func runtime(unknown string, timelocks bool) []byte {
	d := &description{}
	none := d.add("", []byte{tuple}, list())
	u8 := d.add("", []byte{primitive, 3})
	u32 := d.add("", []byte{primitive, 5})
	two := d.add("", []byte{tuple}, list(num(u8), num(u8)))
	four := d.add("", []byte{array}, binary.LittleEndian.AppendUint32(nil, 4), num(u8))
	module := d.add("ModuleError", []byte{composite}, list(field(u8), field(four)))
	failed := d.add("DispatchError", []byte{variant}, list(choice("Other", 0), choice("Module", 3, module)))
	system := d.add("Event", []byte{variant}, list(choice("ExtrinsicSuccess", 0, u32), choice("ExtrinsicFailed", 1, failed, u32)))
	other := d.add("Event", []byte{variant}, list(choice("Deposited", 0, u32, four)))
	event := d.add("RuntimeEvent", []byte{variant}, list(choice("System", 0, system), choice("SubtensorModule", 7, other)))
	phase := d.add("Phase", []byte{variant}, list(choice("ApplyExtrinsic", 0, u32), choice("Initialization", 2)))
	topics := d.add("", []byte{sequence}, num(u8))
	record := d.add("EventRecord", []byte{composite}, list(field(phase), field(event), field(topics)))
	events := d.add("", []byte{sequence}, num(record))
	names := [][]byte{choice("set_weights", callSetWeights), choice("burned_register", callRegister), choice("commit_weights", callHide), choice("reveal_weights", callShow)}
	if timelocks {
		names = append(names, choice(timelockCall, callTimelock))
	}
	calls := d.add("Call", []byte{variant}, list(names...))
	commits := d.add("Call", []byte{variant}, list(choice("set_commitment", callCommit)))
	errs := d.add("Error", []byte{variant}, list(choice("SettingWeightsTooFast", errTooFast), choice("HotKeyNotRegisteredInSubNet", errNotRegistered),
		choice("RevealTooEarly", errTooEarly), choice("IncorrectCommitRevealVersion", errVersion)))
	address := d.add("MultiAddress", []byte{variant}, list(choice("Id", 0, four)))
	extrinsic := d.addWith("UncheckedExtrinsic", list(cat(str("Address"), some(address))), []byte{composite}, list())
	extensions := [][]byte{}
	for _, name := range []string{"CheckNonZeroSender", "CheckSpecVersion", "CheckGenesis", "CheckMortality", "CheckNonce", "ChargeTransactionPayment", "CheckMetadataHash"} {
		extensions = append(extensions, cat(str(name), num(none), num(none)))
	}
	if unknown != "" {
		extensions = append(extensions, cat(str(unknown), num(two), num(none)))
	}
	zero := make([]byte, 8)
	var ofTimelock [][]byte
	if timelocks {
		ofTimelock = [][]byte{storageItem(epochItem, u8, zero, 6), storageItem("PendingEpochAt", u8, zero, 6), storageItem("BlocksSinceLastStep", u8, zero, 6),
			storageItem("CommitRevealWeightsVersion", u8, []byte{timelockVersion, 0}), storageItem("MinAllowedWeights", u8, []byte{2, 0}, 6),
			storageItem("ValidatorPermit", u8, list([]byte{1}, []byte{0}), 6), storageItem("SubnetOwnerHotkey", u8, make([]byte, 32), 6)}
	}
	return cat([]byte("meta\x0e"), list(d.types...), list(
		palletOf("System", 0, list(storageItem("Events", events, list()), storageItem("Number", u32, zero[:4])), []byte{0}, []byte{0}),
		palletOf("Timestamp", 2, list(storageItem("Now", u8, zero)), []byte{0}, []byte{0}),
		palletOf("SubtensorModule", 7, list(append(ofTimelock,
			storageItem("NetworksAdded", u8, zero[:1], 6), storageItem("SubnetworkN", u8, zero[:2], 6), storageItem("Keys", u8, make([]byte, 32), 6, 6),
			storageItem("Uids", u8, nil, 6, 2), storageItem("Weights", u8, list(), 6, 6), storageItem("WeightsVersionKey", u8, zero, 6),
			storageItem("CommitRevealWeightsEnabled", u8, zero[:1], 6), storageItem("Tempo", u8, []byte{7, 0}, 6),
			storageItem("RevealPeriodEpochs", u8, []byte{2, 0, 0, 0, 0, 0, 0, 0}, 5), storageItem("WeightCommits", u8, nil, 5, 5))...), some(calls), some(errs)),
		palletOf("Commitments", 18, list(storageItem("CommitmentOf", u8, nil, 6, 5)), some(commits), []byte{0}),
	), num(extrinsic), []byte{4}, list(extensions...), num(none))
}

// node is an endpoint of a chain that checks transactions and carries out the three calls.
type node struct {
	*httptest.Server
	t    *testing.T
	meta *metadata

	mu     sync.Mutex
	state  map[string][]byte
	blocks [][]byte // the transaction in each, if one
	events [][]byte
	nonces map[Account]uint64
	drop   bool // take transactions, and put none into a block
	stuck  bool // and make no blocks at all
	fast   bool // refuse weights: too fast

	timelocks bool
	start     uint64 // time of block 0, in seconds
	epoch     uint64 // of the subnet 12
	last      uint64 // block in which it began
	kept      map[uint64][]lockedWeights
}

// lockedWeights wait for their epoch.
type lockedWeights struct {
	from   Account
	locked []byte
	round  uint64
}

func newNode(t *testing.T, unknown string, timelocks bool) *node {
	text := runtime(unknown, timelocks)
	meta, err := parseMetadata(text)
	if err != nil {
		t.Fatal(err)
	}
	n := &node{t: t, meta: meta, state: map[string][]byte{}, nonces: map[Account]uint64{}, blocks: make([][]byte, 1), events: make([][]byte, 1),
		timelocks: timelocks, start: quicknetStart, kept: map[uint64][]lockedWeights{}}
	n.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var q struct {
			Method string
			Params []any
		}
		if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
			t.Error(err)
		}
		n.mu.Lock()
		defer n.mu.Unlock()
		answer := map[string]any{"jsonrpc": "2.0", "id": 1}
		if v, err := n.answer(q.Method, q.Params, text); err != nil {
			answer["error"] = map[string]any{"code": 1010, "message": "Invalid Transaction", "data": err.Error()}
		} else {
			answer["result"] = v
		}
		_ = json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(n.Close)
	return n
}

func blockHash(height int) []byte { return blake(nil, []byte{byte(height), byte(height >> 8)}, 32) }

func (n *node) at(hash any) int {
	for i := range n.blocks {
		if hash == tohex(blockHash(i)) {
			return i
		}
	}
	n.t.Errorf("asked for block %v", hash)
	return 0
}

func (n *node) answer(method string, params []any, meta []byte) (any, error) {
	switch method {
	case "state_getMetadata":
		return tohex(meta), nil
	case "state_getRuntimeVersion":
		return map[string]any{"specVersion": 425, "transactionVersion": 1}, nil
	case "chain_getBlockHash":
		if len(params) == 0 {
			return tohex(blockHash(len(n.blocks) - 1)), nil
		}
		if h := int(params[0].(float64)); h < len(n.blocks) {
			return tohex(blockHash(h)), nil
		}
		if n.drop && !n.stuck { // time passes
			n.pass()
		}
		return nil, nil
	case "chain_getFinalizedHead":
		return tohex(blockHash(len(n.blocks) - 1)), nil
	case "chain_getHeader":
		return map[string]any{"number": fmt.Sprintf("0x%x", n.at(params[0]))}, nil
	case "chain_getBlock":
		var list []string
		if tx := n.blocks[n.at(params[0])]; tx != nil {
			list = []string{"0x280403000b", tohex(tx)}
		}
		return map[string]any{"block": map[string]any{"extrinsics": list}}, nil
	case "system_accountNextIndex":
		for a, nonce := range n.nonces {
			if a.String() == params[0] {
				return nonce, nil
			}
		}
		return uint64(0), nil
	case "state_getStorage":
		if events, _, _ := n.meta.key("System", "Events"); params[0] == events {
			return tohex(n.events[n.at(params[1])]), nil
		}
		if len(params) == 2 && n.at(params[1]) != len(n.blocks)-1 {
			return nil, fmt.Errorf("asked for the storage after an old block")
		}
		if v, ok := n.state[params[0].(string)]; ok {
			return tohex(v), nil
		}
		return nil, nil
	case "author_submitExtrinsic":
		tx, err := unhex(params[0].(string))
		if err != nil {
			return nil, err
		}
		return tohex(blake(nil, tx, 32)), n.take(tx)
	}
	return nil, fmt.Errorf("no method %s", method)
}

// put sets an item of the storage.
func (n *node) put(v []byte, pallet, name string, args ...[]byte) {
	k, _, err := n.meta.key(pallet, name, args...)
	if err != nil {
		n.t.Fatal(err)
	}
	n.state[k] = v
}

func (n *node) has(pallet, name string, args ...[]byte) []byte {
	k, _, err := n.meta.key(pallet, name, args...)
	if err != nil {
		n.t.Fatal(err)
	}
	return n.state[k]
}

// pass makes a block without a transaction.
func (n *node) pass() {
	n.begin()
	n.blocks, n.events = append(n.blocks, nil), append(n.events, nil)
}

// begin does what the chain does by itself in its next block, in the order of subtensor: timelocked weights are shown, then an epoch begins.
func (n *node) begin() {
	height := uint64(len(n.blocks))
	now := n.start + height*uint64(blockTime/time.Second)
	n.put(binary.LittleEndian.AppendUint32(nil, uint32(height)), "System", "Number")
	n.put(binary.LittleEndian.AppendUint64(nil, now*1000), "Timestamp", "Now")
	if !n.timelocks {
		return
	}
	const tempo, period = 7, 2 // as the storage has it by default
	current, begins := n.epoch, height-n.last >= tempo
	if begins {
		current++
	}
	var missing []lockedWeights
	for _, w := range n.kept[current-period] {
		if w.round*quicknetPeriod+quicknetStart > now {
			missing = append(missing, w)
			continue
		}
		msg, err := open(w.locked, pulse)
		if err != nil || w.round != pulseRound {
			n.t.Errorf("weights encrypted for round %d are not opened: %v", w.round, err)
			continue
		}
		r := &reader{b: msg}
		if from := r.bytes(); string(from) != string(w.from[:]) {
			n.t.Errorf("the weights of %v are encrypted as those of %x", w.from, from)
		}
		n.weigh(w.from, []byte{12, 0}, r)
		if version := r.u64(); version != 0 || r.err != nil || len(r.b) > 0 {
			n.t.Errorf("weights are encrypted with version %d, %d bytes more, %v", version, len(r.b), r.err)
		}
	}
	delete(n.kept, current-period)
	if missing != nil {
		n.kept[current-period] = missing
	}
	if begins {
		n.epoch, n.last = current, height
		n.put(binary.LittleEndian.AppendUint64(nil, height), module, epochItem, []byte{12, 0})
	}
}

// weigh sets weights.
func (n *node) weigh(from Account, netuid []byte, r *reader) {
	var row [][]byte
	uids := r.bytesOf(2)
	weights := r.bytesOf(2)
	for i := 0; i < len(uids); i += 2 {
		row = append(row, cat(uids[i:i+2], weights[i:i+2]))
	}
	n.put(list(row...), module, "Weights", netuid, n.has(module, "Uids", netuid, from[:]))
}

// take checks a transaction's form and signature, and carries it out in a block of its own.
func (n *node) take(tx []byte) error {
	r := &reader{b: tx}
	r = &reader{b: r.bytes()}
	if r.u8() != 0x84 || r.u8() != 0 {
		return fmt.Errorf("not a signed transaction of version 4 by an account")
	}
	from := r.account()
	if r.u8() != 1 {
		return fmt.Errorf("not an sr25519 signature")
	}
	signature := bytes.Clone(r.take(64))
	extra := r.b
	era := r.u16()
	nonce := r.compact()
	r.take(2) // the tip, and no hash of the metadata
	extra = extra[:len(extra)-len(r.b)]
	call := r.b
	birth := len(n.blocks) - 1
	if r.err != nil || era != uint16(birth%64)<<4|5 {
		return fmt.Errorf("era %x", era)
	}
	if nonce != n.nonces[from] {
		return fmt.Errorf("Transaction is outdated")
	}
	msg := cat(call, extra, binary.LittleEndian.AppendUint32(nil, 425), blockHash(0), blockHash(birth), []byte{0})
	if len(msg) > 256 {
		sum := blake2b.Sum256(msg)
		msg = sum[:]
	}
	pub, err := sr25519.NewPublicKeyFromBytes(from[:])
	if err != nil {
		return err
	}
	var sig sr25519.Signature
	if err := sig.UnmarshalBinary(signature); err != nil || !pub.Verify(signing.NewTranscriptBytes(msg), &sig) {
		return fmt.Errorf("Transaction has a bad signature")
	}
	n.nonces[from]++
	if n.drop {
		return nil
	}
	n.begin()
	result := []byte{0, 0, 0, 0, 0, 0} // System.ExtrinsicSuccess
	if code := n.carryOut(from, call); code != 0 {
		result = []byte{0, 1, 3, 7, code, 0, 0, 0, 0, 0, 0, 0} // System.ExtrinsicFailed: Module 7, its error
	}
	event := func(number byte, event []byte) []byte { return cat([]byte{0, number, 0, 0, 0}, event, list()) }
	events := list(event(0, []byte{0, 0, 1, 2, 3, 4}), cat([]byte{2, 7, 0, 0, 0, 0, 0, 9, 9, 9, 9}, list()), event(1, result))
	n.blocks, n.events = append(n.blocks, tx), append(n.events, events)
	return nil
}

// carryOut returns the number of the pallet's error, or 0.
func (n *node) carryOut(from Account, call []byte) byte {
	r := &reader{b: call[2:]}
	netuid := r.take(2)
	registered := n.has(module, "Uids", netuid, from[:]) != nil
	switch [2]byte(call) {
	case [2]byte{7, callRegister}:
		hotkey := r.account()
		uid := []byte{0, 0}
		if v := n.has(module, "SubnetworkN", netuid); v != nil {
			uid = v
		}
		n.put(hotkey[:], module, "Keys", netuid, uid)
		n.put(uid, module, "Uids", netuid, hotkey[:])
		n.put([]byte{uid[0] + 1, 0}, module, "SubnetworkN", netuid)
	case [2]byte{18, callCommit}:
		n.put(append(make([]byte, 12), r.b...), "Commitments", "CommitmentOf", netuid, from[:])
	case [2]byte{7, callHide}:
		epoch := byte(len(n.blocks) / 8)
		n.put(append(r.take(32), epoch), module, "WeightCommits", netuid, from[:])
	case [2]byte{7, callShow}:
		was := n.has(module, "WeightCommits", netuid, from[:])
		if sum := blake2b.Sum256(append(from[:], call[2:]...)); was == nil || string(sum[:]) != string(was[:32]) || len(n.blocks)/8 != int(was[32])+2 {
			return errTooEarly
		}
		fallthrough
	case [2]byte{7, callSetWeights}:
		switch {
		case !registered:
			return errNotRegistered
		case n.fast:
			return errTooFast
		}
		n.weigh(from, netuid, r)
	case [2]byte{7, callTimelock}:
		locked, round, version := r.bytes(), r.u64(), r.u16()
		switch {
		case version != timelockVersion:
			return errVersion
		case !registered:
			return errNotRegistered
		case n.fast:
			return errTooFast
		case r.err != nil || len(r.b) > 0:
			n.t.Errorf("timelocked weights with %d bytes more, %v", len(r.b), r.err)
		}
		n.kept[n.epoch] = append(n.kept[n.epoch], lockedWeights{from, bytes.Clone(locked), round})
	}
	return 0
}

// bytesOf reads a list of things of the given size.
func (r *reader) bytesOf(size int) []byte { return r.take(size * r.count()) }
