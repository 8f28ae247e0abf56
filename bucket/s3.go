package bucket

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
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
	fail := func(err error) (Store, error) {
		return nil, &Error{Op: "open", At: l.String(), Kind: ErrRefused, Cause: err}
	}
	if err := l.Check(); err != nil {
		return fail(err)
	}
	region := l.Region
	if region == "" {
		region = defaultRegion // otherwise the client asks the server, once per bucket
	}
	core, err := minio.NewCore(l.Endpoint, &minio.Options{
		Creds:      credentials.NewStaticV4(string(l.AccessKey), string(l.SecretKey), string(l.Token)),
		Secure:     l.Secure,
		Region:     region,
		Transport:  c.limited,
		MaxRetries: 1, // this package retries
	})
	if err != nil {
		return fail(err)
	}
	return &s3{l, core}, nil
}

// s3 is a Store over the network.
type s3 struct {
	at   Location
	core *minio.Core
}

// multipartBytes is the size from which objects are uploaded in parts, so that a lost connection
// costs only one part.
const multipartBytes = 64 << 20

// Put writes an object. See Store.
func (s *s3) Put(ctx context.Context, key string, body io.ReaderAt, size int64, ifAbsent bool) error {
	o := minio.PutObjectOptions{ContentType: "application/octet-stream", PartSize: multipartBytes, DisableMultipart: size <= multipartBytes}
	if ifAbsent {
		o.SetMatchETagExcept("*")
	}
	ctx = allow(ctx, 1<<16, replyBytesMax)
	info, err := s.core.Client.PutObject(ctx, s.at.Bucket, s.at.key(key), io.NewSectionReader(body, 0, size), size, o)
	if err == nil && info.Size != size {
		err = fmt.Errorf("it stored %d of %d bytes", info.Size, size)
	}
	return s.fault(ctx, "put", key, err)
}

// Get reads a part of an object. See Store.
func (s *s3) Get(ctx context.Context, key string, offset, n int64) ([]byte, Object, error) {
	if n <= 0 || offset < 0 {
		panic("bucket: an empty range is asked for")
	}
	var o minio.GetObjectOptions
	if err := o.SetRange(offset, offset+n-1); err != nil {
		panic("bucket: " + err.Error())
	}
	ctx = allow(ctx, 1, n+replyBytesMax)
	body, info, header, err := s.core.GetObject(ctx, s.at.Bucket, s.at.key(key), o)
	if err != nil {
		if minio.ToErrorResponse(err).StatusCode == http.StatusRequestedRangeNotSatisfiable {
			whole, err := s.Stat(ctx, key) // it ends before offset, or is empty
			return nil, whole, err
		}
		return nil, Object{}, s.fault(ctx, "get", key, err)
	}
	defer body.Close()
	size := info.Size
	if r := header.Get("Content-Range"); r != "" {
		if size, err = rangeSize(r, offset); err != nil {
			return nil, Object{}, s.fault(ctx, "get", key, err)
		}
	} else if offset > 0 {
		return nil, Object{}, s.fault(ctx, "get", key, errors.New("it sent the whole object instead of a part"))
	}
	if size < 0 {
		return nil, Object{}, s.fault(ctx, "get", key, errors.New("it did not send the object's size"))
	}
	b, err := readExactly(body, min(n, max(size-offset, 0)))
	return b, Object{key, size, version(info)}, s.fault(ctx, "get", key, err)
}

// version returns the entity tag of an object, quoted; "" if there is none or it is weak.
func version(info minio.ObjectInfo) string {
	if info.ETag == "" || strings.HasPrefix(info.ETag, "W/") {
		return ""
	}
	return strconv.Quote(info.ETag)
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
	info, err := s.core.Client.StatObject(ctx, s.at.Bucket, s.at.key(key), minio.StatObjectOptions{})
	if err != nil {
		return Object{}, s.fault(ctx, "stat", key, err)
	}
	return Object{key, info.Size, version(info)}, nil
}

// List returns a page of objects. See Store.
func (s *s3) List(ctx context.Context, prefix, after string, most int) ([]Object, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ctx = allow(ctx, most/pageMax+1, int64(most/pageMax+1)*replyBytesMax)
	owner := false
	o := minio.ListObjectsOptions{Prefix: s.at.key(prefix), Recursive: true, MaxKeys: min(most, pageMax), FetchOwner: &owner}
	if after != "" {
		o.StartAfter = s.at.key(after)
	}
	var page []Object
	for info := range s.core.Client.ListObjectsIter(ctx, s.at.Bucket, o) {
		if info.Err != nil {
			return nil, s.fault(ctx, "list", prefix, info.Err)
		}
		name, ok := s.at.name(info.Key)
		if !ok {
			return nil, s.fault(ctx, "list", prefix, fmt.Errorf("it lists %.300q", info.Key))
		}
		if page = append(page, Object{Key: name, Bytes: info.Size}); len(page) == most {
			break
		}
	}
	return page, nil
}

// Delete removes objects one by one, since not all stores support bulk removal. See Store.
func (s *s3) Delete(ctx context.Context, keys ...string) error {
	for _, key := range keys {
		once := allow(ctx, 1, replyBytesMax)
		err := s.core.Client.RemoveObject(once, s.at.Bucket, s.at.key(key), minio.RemoveObjectOptions{})
		if err = s.fault(once, "delete", key, err); err != nil && !errors.Is(err, ErrMissing) {
			return err
		}
	}
	return nil
}

// fault converts an error of the client library to an *Error; nil stays nil.
func (s *s3) fault(ctx context.Context, op, key string, err error) error {
	if err == nil {
		return nil
	}
	e := &Error{Op: op, At: s.at.String(), Key: key, Kind: ErrUnreachable, Cause: err}
	answer := minio.ToErrorResponse(err)
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
	case answer.StatusCode == 0:
		return e
	}
	e.Cause = fmt.Errorf("%d %.60q %.200q", answer.StatusCode, answer.Code, answer.Message)
	switch code := answer.StatusCode; {
	case answer.Code == "RequestTimeTooSkewed" || answer.Code == "RequestExpired":
		e.Kind, e.Cause = ErrClock, nil
	case answer.Code == "NoSuchBucket":
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
func isFull(answer minio.ErrorResponse) bool {
	return answer.StatusCode == http.StatusInsufficientStorage || strings.HasSuffix(answer.Code, "QuotaExceeded") ||
		strings.Contains(answer.Message, "no space left on device")
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
	if r.Header.Get("If-None-Match") != "" {
		// Servers refuse such a put without reading its body, and MinIO then cuts the connection.
		// Send the body only on request: otherwise the refusal can be lost with the connection, and
		// the connection cannot be reused.
		r = r.Clone(r.Context())
		r.Header.Set("Expect", "100-continue")
		r.Close = true
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
