package ledger

import (
	"fmt"
	"net/http"
)

// Redirects is the CheckRedirect of clients of a ledger. An endpoint may send them on to another
// scheme or port, as servers do that want encryption, and nowhere else: a stranger's ticket may
// name it, and it could have a machine send requests to hosts that only this one reaches.
func Redirects(to *http.Request, via []*http.Request) error {
	from := via[0].URL
	if len(via) > 3 || to.URL.Hostname() != from.Hostname() || to.URL.Path != from.Path || to.URL.RawQuery != from.RawQuery {
		return fmt.Errorf("the endpoint sends us on to %s", to.URL.Redacted())
	}
	return nil
}
