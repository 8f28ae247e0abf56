package bucket

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// S3Options configure how stores are reached.
type S3Options struct {
	// Public refuses endpoints that are not on the public internet. Locations come from strangers,
	// who must not be able to direct requests, signed or not, from a member's machine to hosts that
	// only that machine reaches.
	Public  bool
	RootCAs *x509.CertPool // in addition to the system's; nil: none
}

// Client opens S3 buckets, sharing connections among them.
type Client struct {
	transport *http.Transport
	limited   http.RoundTripper
}

// Time limits for the parts of a request that a store controls. The operation's context bounds the
// whole.
const (
	dialTimeout   = 10 * time.Second
	answerTimeout = 60 * time.Second // until the response header
	idleTimeout   = 30 * time.Second
)

// NewClient returns a client. The caller must Close it.
func NewClient(o S3Options) *Client {
	dialer := &net.Dialer{Timeout: dialTimeout}
	proxy := http.ProxyFromEnvironment
	if o.Public {
		dialer.ControlContext, proxy = PublicOnly, nil
	}
	t := &http.Transport{
		Proxy:                  proxy,
		DialContext:            dialer.DialContext,
		TLSHandshakeTimeout:    dialTimeout,
		ResponseHeaderTimeout:  answerTimeout,
		ExpectContinueTimeout:  time.Second,
		IdleConnTimeout:        idleTimeout,
		MaxIdleConnsPerHost:    parallel,
		MaxResponseHeaderBytes: headBytesMax,
		DisableCompression:     true,
	}
	if o.RootCAs != nil {
		t.TLSClientConfig = &tls.Config{RootCAs: o.RootCAs, MinVersion: tls.VersionTLS12}
	}
	return &Client{t, limiter{t}}
}

// Close closes idle connections. Stores of the client keep working, but more slowly.
func (c *Client) Close() { c.transport.CloseIdleConnections() }

// Open returns the store of a location, without contacting the server.
func (c *Client) Open(l Location) (Store, error) {
	if err := l.Check(); err != nil {
		return nil, &Error{Op: "open", At: l.String(), Kind: ErrRefused, Cause: err}
	}
	region := l.Region
	if region == "" {
		region = defaultRegion
	}
	return &s3{l, region, c.limited}, nil
}

// s3 is a Store over the network.
type s3 struct {
	at        Location
	region    string
	transport http.RoundTripper
}

// Put writes an object. See Store.
func (s *s3) Put(ctx context.Context, key string, body io.ReaderAt, size int64, ifAbsent bool) error {
	ctx = allow(ctx, 1<<16, replyBytesMax)
	q := request{method: http.MethodPut, key: s.at.key(key), body: body, size: size, header: http.Header{"Content-Type": {"application/octet-stream"}}}
	condition := http.Header{}
	if ifAbsent {
		condition.Set("If-None-Match", "*")
	}
	if size > partSize {
		return s.fault(ctx, "put", key, s.putParts(ctx, q, condition))
	}
	maps.Copy(q.header, condition)
	return s.fault(ctx, "put", key, s.ask(ctx, q, nil))
}

// Get reads a part of an object. See Store.
func (s *s3) Get(ctx context.Context, key string, offset, n int64) ([]byte, Object, error) {
	if n <= 0 || offset < 0 {
		panic("bucket: an empty range is asked for")
	}
	ctx = allow(ctx, 1, n+replyBytesMax)
	span := http.Header{"Range": {fmt.Sprintf("bytes=%d-%d", offset, offset+n-1)}}
	answer, err := s.do(ctx, request{method: http.MethodGet, key: s.at.key(key), header: span})
	if err != nil {
		if r := (*refusal)(nil); errors.As(err, &r) && r.status == http.StatusRequestedRangeNotSatisfiable {
			whole, err := s.Stat(ctx, key) // it ends before offset, or is empty
			return nil, whole, err
		}
		return nil, Object{}, s.fault(ctx, "get", key, err)
	}
	defer answer.Body.Close()
	whole, err := describe(key, answer)
	if err != nil {
		return nil, Object{}, s.fault(ctx, "get", key, err)
	}
	if r := answer.Header.Get("Content-Range"); r != "" {
		if whole.Bytes, err = rangeSize(r, offset); err != nil {
			return nil, Object{}, s.fault(ctx, "get", key, err)
		}
	} else if offset > 0 {
		return nil, Object{}, s.fault(ctx, "get", key, errors.New("it sent the whole object instead of a part"))
	}
	b, err := readExactly(answer.Body, min(n, max(whole.Bytes-offset, 0)))
	return b, whole, s.fault(ctx, "get", key, err)
}

// describe reads the description of an object from an answer that has all or, so far, a part of it.
func describe(key string, answer *http.Response) (Object, error) {
	if answer.Header.Get("Last-Modified") == "" || answer.ContentLength < 0 {
		return Object{}, errors.New("it did not send the object's date and size")
	}
	tag := answer.Header.Get("ETag")
	if strings.HasPrefix(tag, "W/") {
		tag = "" // a weak one, which other bytes may have
	}
	return Object{key, answer.ContentLength, tag}, nil
}

// readExactly reads n bytes. Its allocation grows with the received data, as a store may claim any
// size.
func readExactly(r io.Reader, n int64) ([]byte, error) {
	const first = 1 << 20
	b := make([]byte, 0, min(n, first))
	for int64(len(b)) < n {
		if len(b) == cap(b) {
			b = append(make([]byte, 0, min(n, int64(4*cap(b)))), b...)
		}
		m, err := r.Read(b[len(b):cap(b)])
		b = b[:len(b)+m]
		if int64(len(b)) == n {
			return b, nil
		}
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return nil, fmt.Errorf("the answer ended after %d of %d bytes: %w", len(b), n, err)
		}
	}
	return b, nil
}

// rangeSize returns the size of the whole object from a Content-Range that must begin at offset.
func rangeSize(header string, offset int64) (int64, error) {
	text, ok := strings.CutPrefix(header, "bytes ")
	span, total, ok2 := strings.Cut(text, "/")
	from, _, ok3 := strings.Cut(span, "-")
	if f, err := strconv.ParseInt(from, 10, 64); !ok || !ok2 || !ok3 || err != nil || f != offset {
		return 0, fmt.Errorf("it sent the range %.100q, want the one from byte %d", header, offset)
	}
	size, err := strconv.ParseInt(total, 10, 64)
	if err != nil || size < 0 {
		return 0, fmt.Errorf("it sent the range %.100q without the object's size", header)
	}
	return size, nil
}

// Stat describes one object. See Store.
func (s *s3) Stat(ctx context.Context, key string) (Object, error) {
	ctx = allow(ctx, 1, replyBytesMax)
	answer, err := s.do(ctx, request{method: http.MethodHead, key: s.at.key(key)})
	if err != nil {
		return Object{}, s.fault(ctx, "stat", key, err)
	}
	defer answer.Body.Close()
	whole, err := describe(key, answer)
	return whole, s.fault(ctx, "stat", key, err)
}

// List returns a page of objects. See Store.
func (s *s3) List(ctx context.Context, prefix, after string, most int) ([]Object, error) {
	ctx = allow(ctx, most/pageMax+1, int64(most/pageMax+1)*replyBytesMax)
	query := url.Values{"list-type": {"2"}, "encoding-type": {"url"}, "prefix": {s.at.key(prefix)}, "max-keys": {strconv.Itoa(min(most, pageMax))}}
	if after != "" {
		query.Set("start-after", s.at.key(after))
	}
	var page []Object
	for {
		var answer struct {
			XMLName               xml.Name `xml:"ListBucketResult"`
			IsTruncated           bool
			NextContinuationToken string
			EncodingType          string
			Contents              []struct {
				Key  string
				Size int64
			}
		}
		if err := s.ask(ctx, request{method: http.MethodGet, query: query}, &answer); err != nil {
			return nil, s.fault(ctx, "list", prefix, err)
		}
		for _, c := range answer.Contents {
			key, err := c.Key, error(nil)
			if answer.EncodingType == "url" {
				key, err = url.QueryUnescape(key)
			}
			name, ok := s.at.name(key)
			if !ok || err != nil {
				return nil, s.fault(ctx, "list", prefix, fmt.Errorf("it lists %.300q", c.Key))
			}
			if page = append(page, Object{Key: name, Bytes: c.Size}); len(page) == most {
				return page, nil
			}
		}
		if !answer.IsTruncated {
			return page, nil
		}
		query.Set("continuation-token", answer.NextContinuationToken)
	}
}

// Delete removes objects one by one, since not all stores support bulk removal. See Store.
func (s *s3) Delete(ctx context.Context, keys ...string) error {
	for _, key := range keys {
		once := allow(ctx, 1, replyBytesMax)
		err := s.fault(once, "delete", key, s.ask(once, request{method: http.MethodDelete, key: s.at.key(key)}, nil))
		if err != nil && !errors.Is(err, ErrMissing) {
			return err
		}
	}
	return nil
}

// fault converts an error of a request to an *Error; nil stays nil.
func (s *s3) fault(ctx context.Context, op, key string, err error) error {
	if err == nil {
		return nil
	}
	e := &Error{Op: op, At: s.at.String(), Key: key, Kind: ErrUnreachable, Cause: err}
	var answer *refusal
	switch {
	case ctx.Err() != nil:
		e.Kind, e.Cause = ctx.Err(), nil
		return slow(ctx, e)
	case errors.Is(err, ErrForbidden):
		e.Kind, e.Cause = ErrForbidden, nil
		return e
	case errors.Is(err, errAllowance):
		e.Kind = ErrLied
		return e
	case !errors.As(err, &answer):
		return e
	}
	switch code := answer.status; {
	case answer.code == "RequestTimeTooSkewed" || answer.code == "RequestExpired":
		e.Kind, e.Cause = ErrClock, nil
	case answer.code == "NoSuchBucket":
		e.Kind = ErrRefused
	case code == http.StatusNotFound:
		e.Kind, e.Cause = ErrMissing, nil
	case code == http.StatusPreconditionFailed || code == http.StatusConflict:
		e.Kind, e.Cause = ErrExists, nil
	case isFull(answer):
		e.Kind, e.Cause = ErrFull, nil
	case code == http.StatusTooManyRequests || code == http.StatusRequestTimeout || code >= 500:
	default:
		e.Kind = ErrRefused
	}
	return e
}

// isFull reports whether a store refuses an object for want of room. Stores name a quota's end
// differently, and MinIO a full disk as its own failure unless the disk was full before.
func isFull(answer *refusal) bool {
	return answer.status == http.StatusInsufficientStorage || strings.HasSuffix(answer.code, "QuotaExceeded") ||
		strings.Contains(answer.message, "no space left on device")
}

// allowance bounds the requests and response bytes of one operation, whatever the store answers.
type allowance struct{ requests, bytes atomic.Int64 }

type allowanceKey struct{}

// errAllowance ends an operation whose store never finishes its answer.
var errAllowance = errors.New("the store's answer does not end")

func allow(ctx context.Context, requests int, bytes int64) context.Context {
	a := &allowance{}
	a.requests.Store(int64(requests))
	a.bytes.Store(bytes)
	return context.WithValue(ctx, allowanceKey{}, a)
}

// limiter is a transport that keeps operations within their allowance.
type limiter struct{ next http.RoundTripper }

// RoundTrip sends a request if the allowance permits.
func (l limiter) RoundTrip(r *http.Request) (*http.Response, error) {
	a, ok := r.Context().Value(allowanceKey{}).(*allowance)
	if !ok {
		panic("bucket: a request without an allowance")
	}
	if a.requests.Add(-1) < 0 {
		return nil, errAllowance
	}
	response, err := l.next.RoundTrip(r)
	if err == nil {
		response.Body = limitedBody{response.Body, a}
	}
	return response, err
}

// limitedBody is a response body that stops at its allowance.
type limitedBody struct {
	io.ReadCloser
	allowed *allowance
}

// Read reads while the allowance lasts.
func (b limitedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.allowed.bytes.Add(-int64(n)) < 0 {
		return n, errAllowance
	}
	return n, err
}
