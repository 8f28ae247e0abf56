package ledger_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/ledger/comet"
)

// An endpoint, which a stranger's ticket may name, has nobody send requests to another host, or to
// another path of its own name, which may meanwhile stand for another host.
func TestEndpointsSendNobodyElsewhere(t *testing.T) {
	var asked []string
	inside := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked = append(asked, r.URL.String()) }))
	defer inside.Close()
	at, err := url.Parse(inside.URL)
	if err != nil {
		t.Fatal(err)
	}
	for _, to := range []string{"http://localhost:" + at.Port() + "/v1/status", inside.URL + "/apply?reboot=1", inside.URL + "/v1/status?reboot=1"} {
		evil := httptest.NewServer(http.RedirectHandler(to, http.StatusTemporaryRedirect))
		if _, err := comet.Discover(t.Context(), evil.URL); err == nil {
			t.Errorf("a chain is found at %s", to)
		}
		evil.Close()
	}
	if len(asked) > 0 {
		t.Errorf("requests for %q were sent to another server", asked)
	}
	moved := httptest.NewServer(http.RedirectHandler(inside.URL+"/v1/status", http.StatusMovedPermanently)) // as to another scheme
	defer moved.Close()
	client := http.Client{CheckRedirect: ledger.Redirects}
	r, err := client.Get(moved.URL + "/v1/status")
	if err != nil {
		t.Fatal(err)
	}
	if r.Body.Close(); len(asked) != 1 {
		t.Errorf("a server at another port was asked for %q", asked)
	}
}
