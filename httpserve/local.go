package httpserve

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// LocalOnly returns a handler that refuses requests whose host is not this machine, if listen is an
// address that only this machine reaches. Otherwise a page that its user visits could point its own
// name here, and read what next answers.
func LocalOnly(next http.Handler, listen net.Addr) http.Handler {
	if at, ok := listen.(*net.TCPAddr); !ok || !at.IP.IsLoopback() {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !thisMachine(r.Host) {
			http.Error(w, "this server is for this machine only; ask for it as http://localhost", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// thisMachine reports whether the host that a request names is this machine.
func thisMachine(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	ip, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return host == "localhost" || err == nil && ip.IsLoopback()
}
