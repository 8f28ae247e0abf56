// Package httpserve runs HTTP servers until their context ends.
package httpserve

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"time"
)

// Run serves s on l, over TLS if s has a TLS configuration, until ctx ends, and then closes l. It
// gives requests under way the time grace to finish, cuts off the others, and returns nil. It sets
// limits that s does not set, and bounds the connections unless l comes from Limit. Contexts of
// requests end with ctx, unless s has a BaseContext.
func Run(ctx context.Context, l net.Listener, s *http.Server, grace time.Duration) error {
	s.ReadHeaderTimeout = cmp.Or(s.ReadHeaderTimeout, 10*time.Second)
	s.IdleTimeout = cmp.Or(s.IdleTimeout, 2*time.Minute)
	s.MaxHeaderBytes = cmp.Or(s.MaxHeaderBytes, 16<<10)
	if s.BaseContext == nil {
		s.BaseContext = func(net.Listener) context.Context { return ctx }
	}
	if s.ErrorLog == nil {
		s.ErrorLog = log.New(io.Discard, "", 0) // broken requests of strangers are not worth a line
	}
	l = bounded(l)
	ended := make(chan error, 1)
	go func() {
		if s.TLSConfig != nil {
			ended <- s.ServeTLS(l, "", "")
		} else {
			ended <- s.Serve(l)
		}
	}()
	select {
	case err := <-ended:
		return fmt.Errorf("serve HTTP on %s: %w", l.Addr(), err)
	case <-ctx.Done():
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	if s.Shutdown(end) != nil {
		_ = s.Close()
	}
	<-ended
	return nil
}
