package bittensor

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/entrain-network/entrain/host/clock"
	"github.com/entrain-network/entrain/wire"
)

func TestNewestNamesWhatTheCallerLacks(t *testing.T) {
	n := newNode(t, "", false)
	n.mu.Lock()
	for len(n.blocks) <= 40 {
		n.blocks, n.events = append(n.blocks, nil), append(n.events, nil)
	}
	n.mu.Unlock()
	head, hash, err := (&Client{url: n.URL}).Block(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	genesis := wire.Hash(blockHash(0))
	for _, c := range []struct {
		name         string
		genesis      wire.Hash
		number, seen uint64
		want         int
	}{
		{"nothing known", wire.Hash{}, 0, 0, clock.SightMax},
		{"two are new", genesis, head - 2, 0, 2},
		{"far behind", genesis, 1, 0, clock.SightMax},
		{"all known", genesis, head, 0, 0},
		{"ahead of the node", genesis, head + 5, 0, 0},
		{"named before", genesis, head - 2, head, 0},
		{"of another chain", wire.Hash{1}, head + 5, 0, clock.SightMax},
	} {
		s, err := Newest(t.Context(), n.URL, c.genesis, c.number, c.seen)
		if err != nil || len(s.Hashes) != c.want {
			t.Errorf("%s: %d hashes, %v; want %d", c.name, len(s.Hashes), err, c.want)
			continue
		}
		if c.want > 0 && (s.Number != head || s.Genesis != genesis || s.Hashes[c.want-1] != wire.Hash(hash)) {
			t.Errorf("%s: %+v", c.name, s)
		}
		for i, x := range s.Hashes {
			if at := head - uint64(c.want-1-i); x != wire.Hash(blockHash(int(at))) {
				t.Errorf("%s: block %d has hash %v", c.name, at, x)
			}
		}
	}
}

// What an endpoint answers may be anything.
func TestEndpointsThatAnswerNonsenseNameNothing(t *testing.T) {
	for _, answer := range []string{`{"result":null}`, `{"result":"0x12"}`, `{"result":{"number":"0x5"}}`, `{}`, `[]`, `{"error":{"message":"no"}}`,
		`{"result":"0x` + strings.Repeat("00", 1<<20) + `"}`} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(answer)) }))
		if got, err := Newest(t.Context(), s.URL, wire.Hash{}, 0, 0); err == nil {
			t.Errorf("%.40s: %+v", answer, got)
		}
		s.Close()
	}
	if _, err := Newest(t.Context(), "ftp://x", wire.Hash{}, 0, 0); err == nil || !strings.Contains(err.Error(), "no URL") {
		t.Error(err)
	}
}
