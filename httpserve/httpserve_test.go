package httpserve_test

import (
	"context"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/entrain-network/entrain/httpserve"
)

// TestEnds ends a server with one request that finishes, and one that does not.
func TestEnds(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	arrived, cut := make(chan string, 2), make(chan struct{})
	ended := make(chan error, 1)
	go func() {
		ended <- httpserve.Run(ctx, l, &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			arrived <- r.URL.Path
			<-r.Context().Done()
			if r.URL.Path == "/stuck" {
				<-cut
			}
		})}, 50*time.Millisecond)
	}()
	answers := make(map[string]chan error)
	for _, path := range []string{"/finishes", "/stuck"} {
		answer := make(chan error, 1)
		answers[path] = answer
		go func() {
			r, err := http.Get("http://" + l.Addr().String() + path)
			if err == nil {
				err = r.Body.Close()
			}
			answer <- err
		}()
	}
	<-arrived
	<-arrived
	end()
	if err := <-answers["/finishes"]; err != nil {
		t.Error("a request that ends with its context:", err)
	}
	if err := <-answers["/stuck"]; err == nil {
		t.Error("a request that does not end was answered")
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	close(cut)
	if _, err := net.Dial("tcp", l.Addr().String()); err == nil {
		t.Error("the listener is still open")
	}
}

func TestReportsAFailure(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	if httpserve.Run(t.Context(), l, &http.Server{}, time.Second) == nil {
		t.Error("no error from a closed listener")
	}
}
