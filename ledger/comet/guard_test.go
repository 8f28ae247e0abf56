package comet

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/entrain-network/entrain/httpserve"
)

// Silent connections do not use up the descriptors of a replica, nor do those of one address the
// places of others.
func TestConnectionsLeaveDescriptors(t *testing.T) {
	for limit, want := range map[uint64]int{1024: 512, 4096: 2048, 20_000: 15_904, 1 << 20: connsMax, 1 << 63: connsMax} {
		if got := connsOf(limit); got != want {
			t.Errorf("of %d descriptors clients may have %d, want %d", limit, got, want)
		}
		if streams := streamsOf(want); streams > want-want/4 || limit >= 20_000 && streams < 10_000 {
			t.Errorf("of %d connections %d may be streams", want, streams)
		}
	}
}

// What a replica sends to other machines is bounded, whoever asks, and however often. This one is
// another machine at its second address.
func TestThePaceBoundsTheAPI(t *testing.T) {
	const limit, asked = 32 << 10, 6 // bytes a second, requests
	r, err := Open(replicaDir(t, Options{}), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Pace(limit)
	run(t, r)
	path := r.Endpoint() + "/" + strings.Repeat("a", 8<<10) // the refusal repeats it
	elsewhere := &http.Transport{DialContext: (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}).DialContext}
	defer elsewhere.CloseIdleConnections()
	client := http.Client{Transport: elsewhere}
	got, began := 0, time.Now()
	for range asked {
		answer, err := client.Get(path)
		if errors.Is(err, syscall.EADDRNOTAVAIL) {
			t.Skip("this machine has one address: ", err)
		}
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		got += len(b)
	}
	if took, least := time.Since(began), time.Duration(got-limit/2)*time.Second/limit; got < limit || took < least {
		t.Errorf("%d bytes came in %v, at %d a second in %v at least", got, took, limit, least)
	}
}

// Submissions of one address, whose bodies need not end, leave places to those of others.
func TestSubmissionsOfOneAddressLeavePlaces(t *testing.T) {
	a := &api{rates: httpserve.NewRates(txsPerSecond, txsBurst, time.Now), waiters: httpserve.NewPlaces(submittersMax, submittersMax/addrPart)}
	for range submittersMax {
		a.waiters.Take("192.0.2.1")
	}
	for remote, want := range map[string]int{"192.0.2.1:9": http.StatusServiceUnavailable, "198.51.100.7:9": http.StatusUnprocessableEntity} {
		r := httptest.NewRequest("POST", "/v1/txs", strings.NewReader("no transaction"))
		r.RemoteAddr = remote
		w := httptest.NewRecorder()
		if a.submit(w, r); w.Code != want {
			t.Errorf("%s: %d %s, want %d", remote, w.Code, w.Body, want)
		}
	}
}
