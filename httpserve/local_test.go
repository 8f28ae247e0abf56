package httpserve_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/entrain-network/entrain/httpserve"
)

// A server that only this machine reaches answers nobody who took it for another: the name of a
// stranger's page may point here.
func TestLocalServersAnswerForThisMachineAlone(t *testing.T) {
	ok := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	for _, c := range []struct {
		listen, host string
		want         int
	}{
		{"127.0.0.1:80", "localhost", 200}, {"127.0.0.1:80", "localhost:8080", 200}, {"127.0.0.1:80", "127.0.0.1:8080", 200}, {"[::1]:80", "[::1]:8080", 200},
		{"[::1]:80", "[::1]", 200}, {"127.0.0.1:80", "evil.example", 421}, {"[::1]:80", "evil.example:80", 421}, {"127.0.0.1:80", "localhost.evil.example", 421},
		{"127.0.0.1:80", "10.0.0.1", 421}, {"127.0.0.1:80", "", 421}, {"0.0.0.0:80", "evil.example", 200}, {"192.0.2.1:80", "evil.example", 200},
	} {
		at, err := net.ResolveTCPAddr("tcp", c.listen)
		if err != nil {
			t.Fatal(err)
		}
		r, w := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil), httptest.NewRecorder()
		r.Host = c.host
		httpserve.LocalOnly(ok, at).ServeHTTP(w, r)
		if w.Code != c.want {
			t.Errorf("at %s for %q: %d, want %d", c.listen, c.host, w.Code, c.want)
		}
	}
}
