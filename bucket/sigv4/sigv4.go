// Package sigv4 computes version 4 signatures of S3 requests, for their sender and their receiver.
package sigv4

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// What signatures are made of.
const (
	Algorithm  = "AWS4-HMAC-SHA256"
	TimeLayout = "20060102T150405Z"
	ScopeEnd   = "aws4_request"
)

// Key derives the key that signs from a secret and a scope, date/region/s3/aws4_request.
func Key(secret, scope string) []byte {
	key := []byte("AWS4" + secret)
	for part := range strings.SplitSeq(scope, "/") {
		key = mac(key, part)
	}
	return key
}

// Sign returns the key's signature over a text of the kind and lines given.
func Sign(key []byte, kind string, at time.Time, scope string, lines ...string) []byte {
	return mac(key, strings.Join(append([]string{kind, at.Format(TimeLayout), scope}, lines...), "\n"))
}

func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

// Canonical returns the one form of a request that both sides sign, with the headers named, which
// are sorted and in lower case. The body is given by its hash, or by how it is signed.
func Canonical(r *http.Request, query string, headers []string, body string) string {
	var b strings.Builder
	b.WriteString(r.Method + "\n" + EncodePath(r.URL.Path) + "\n" + query + "\n")
	for _, name := range headers {
		b.WriteString(name + ":" + headerValue(r, name) + "\n")
	}
	b.WriteString("\n" + strings.Join(headers, ";") + "\n" + body)
	return b.String()
}

// headerValue returns a header's values, joined, with single spaces.
func headerValue(r *http.Request, name string) string {
	switch name {
	case "host":
		return r.Host
	case "content-length":
		return strconv.FormatInt(r.ContentLength, 10)
	}
	var values []string
	for _, v := range r.Header.Values(name) {
		values = append(values, strings.Join(strings.Fields(v), " "))
	}
	return strings.Join(values, ",")
}

// EncodeQuery returns a query in its canonical form.
func EncodeQuery(q url.Values) string { return strings.ReplaceAll(q.Encode(), "+", "%20") }

// EncodePath escapes all bytes of a path but the unreserved ones and slashes.
func EncodePath(path string) string {
	path = strings.ReplaceAll(url.QueryEscape(path), "+", "%20")
	return strings.ReplaceAll(path, "%2F", "/")
}

// Hash returns the SHA-256 of b in hexadecimal.
func Hash(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
