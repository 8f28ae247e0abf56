package web

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// One stranger's pages leave places for those of others.
func TestOneAddressLeavesStreams(t *testing.T) {
	s := New(Options{})
	for range streamsMax / 2 {
		s.streams.Take("192.0.2.1")
	}
	w := httptest.NewRecorder()
	if s.serveEvents(w, httptest.NewRequest("GET", "/", nil), nil); w.Code != http.StatusServiceUnavailable {
		t.Errorf("an address gets one more: %d", w.Code)
	}
	if !s.streams.Take("198.51.100.7") {
		t.Error("others find no place")
	}
}
