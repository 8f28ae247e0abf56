package serve

import (
	"crypto/hmac"
	"encoding/hex"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/entrain-network/entrain/bucket/sigv4"
)

// What this server takes, and names that S3 gives to bodies.
const (
	skewMax      = 15 * time.Minute   // between the client's clock and ours
	expiryMax    = 7 * 24 * time.Hour // of a signed address
	unsignedBody = "UNSIGNED-PAYLOAD"
	emptyHash    = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
)

// signature is the part of a request that identifies its signer.
type signature struct {
	access  string
	scope   string   // date/region/s3/aws4_request
	headers []string // names of the signed headers, in lower case
	value   string   // in hexadecimal
	at      time.Time
	body    string        // hash of the body, or how it is signed
	expiry  time.Duration // of a signed address; 0 for a signed header
	query   string        // canonical
	key     []byte        // with which it was made, once it is checked
}

// readSignature reads the signature of a request, from its header or its address.
func readSignature(r *http.Request, query url.Values) (g signature, err error) {
	var credential, headers, at string
	switch {
	case query.Has("X-Amz-Signature"):
		if query.Get("X-Amz-Algorithm") != sigv4.Algorithm {
			return g, errBadSignature
		}
		credential, headers, at = query.Get("X-Amz-Credential"), query.Get("X-Amz-SignedHeaders"), query.Get("X-Amz-Date")
		g.value, g.body = query.Get("X-Amz-Signature"), unsignedBody
		seconds, err := strconv.ParseUint(query.Get("X-Amz-Expires"), 10, 32)
		if g.expiry = time.Duration(seconds) * time.Second; err != nil || g.expiry <= 0 || g.expiry > expiryMax {
			return g, errBadSignature
		}
		query.Del("X-Amz-Signature")
	case r.Header.Get("Authorization") != "":
		if credential, headers, g.value, err = readAuthorization(r.Header.Get("Authorization")); err != nil {
			return g, err
		}
		if at = r.Header.Get("X-Amz-Date"); at == "" {
			return g, errBadSignature
		}
		if g.body = r.Header.Get("X-Amz-Content-Sha256"); g.body == "" {
			return g, errNoBodyHash
		}
	default:
		return g, errDenied
	}
	if g.at, err = time.Parse(sigv4.TimeLayout, at); err != nil {
		return g, errBadSignature
	}
	var ok bool
	g.access, g.scope, ok = strings.Cut(credential, "/")
	parts := strings.Split(g.scope, "/")
	if !ok || len(parts) != 4 || parts[0] != at[:8] || parts[2] != "s3" || parts[3] != sigv4.ScopeEnd {
		return g, errBadSignature
	}
	g.headers = strings.Split(headers, ";")
	g.query = sigv4.EncodeQuery(query)
	return g, nil
}

// readAuthorization reads the Authorization header: the algorithm and three fields.
func readAuthorization(header string) (credential, headers, value string, err error) {
	text, ok := strings.CutPrefix(header, sigv4.Algorithm+" ")
	if !ok {
		return "", "", "", errBadSignature
	}
	fields := map[string]string{}
	for field := range strings.SplitSeq(text, ",") {
		name, value, ok := strings.Cut(strings.TrimSpace(field), "=")
		if _, twice := fields[name]; !ok || twice {
			return "", "", "", errBadSignature
		}
		fields[name] = value
	}
	credential, headers, value = fields["Credential"], fields["SignedHeaders"], fields["Signature"]
	if len(fields) != 3 || credential == "" || headers == "" || value == "" {
		return "", "", "", errBadSignature
	}
	return credential, headers, value, nil
}

// check checks a signature against the secret of its access key.
func (g *signature) check(r *http.Request, secret string, now time.Time) error {
	end := g.at.Add(skewMax)
	if g.expiry > 0 {
		end = g.at.Add(g.expiry)
	}
	if now.Before(g.at.Add(-skewMax)) || now.After(end) {
		return errSkewed
	}
	for name := range r.Header {
		name = strings.ToLower(name)
		if strings.HasPrefix(name, "x-amz-") && !slices.Contains(g.headers, name) {
			return errUnsignedHeader
		}
	}
	if !slices.Contains(g.headers, "host") {
		return errUnsignedHeader
	}
	g.key = sigv4.Key(secret, g.scope)
	if !g.signs(g.value, sigv4.Algorithm, sigv4.Hash([]byte(sigv4.Canonical(r, g.query, g.headers, g.body)))) {
		return errWrongSignature
	}
	return nil
}

// signs reports whether value is the key's signature over a text of the kind and lines given.
func (g *signature) signs(value, kind string, lines ...string) bool {
	given, err := hex.DecodeString(value)
	return err == nil && hmac.Equal(given, sigv4.Sign(g.key, kind, g.at, g.scope, lines...))
}
