package comet

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"testing"

	"github.com/entrain-network/entrain/ledger/ledgertest"
)

func TestLedger(t *testing.T) {
	r, _ := start(t, replicaDir(t, Options{}))
	at, err := url.Parse(r.Endpoint())
	if err != nil {
		t.Fatal(err)
	}
	ledgertest.Test(t, func() ledgertest.Link {
		var cut atomic.Bool
		pass := httputil.NewSingleHostReverseProxy(at)
		pass.FlushInterval = -1
		proxy := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, req *http.Request) {
			if cut.Load() {
				panic(http.ErrAbortHandler)
			}
			pass.ServeHTTP(rw, req)
		}))
		t.Cleanup(proxy.Close)
		return ledgertest.Link{Client: newClient(t, proxy.URL), Cut: func(on bool) {
			cut.Store(on)
			proxy.CloseClientConnections()
		}}
	})
}
