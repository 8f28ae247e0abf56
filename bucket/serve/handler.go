package serve

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// failure is an error of S3's.
type failure struct {
	status        int
	code, message string
}

// Error returns the code and the message.
func (f *failure) Error() string { return f.code + ": " + f.message }

var (
	errBadChecksum    = &failure{400, "InvalidRequest", "The checksum's algorithm is not supported."}
	errBadChunk       = &failure{400, "InvalidRequest", "The body is not in aws-chunked form."}
	errBadKey         = &failure{400, "InvalidArgument", "The key is not valid UTF-8, or empty, or has a zero byte."}
	errBadPart        = &failure{400, "InvalidPart", "A part is missing, or its tag does not match."}
	errBadPartNumber  = &failure{400, "InvalidArgument", "Part numbers are 1 to 10000."}
	errBadQuery       = &failure{400, "InvalidArgument", "The query is not valid."}
	errBadSignature   = &failure{400, "AuthorizationHeaderMalformed", "The signature is not a complete one of version 4."}
	errBadXML         = &failure{400, "MalformedXML", "The body is not the XML that belongs here."}
	errDenied         = &failure{403, "AccessDenied", "Access denied."}
	errExists         = &failure{412, "PreconditionFailed", "The object exists."}
	errInternal       = &failure{500, "InternalError", "The server failed to read or write its files."}
	errKeyTooLong     = &failure{400, "KeyTooLongError", "The key, or a part of it between slashes, is too long."}
	errNoBodyHash     = &failure{400, "InvalidRequest", "X-Amz-Content-Sha256 is missing or not valid."}
	errNoBucket       = &failure{404, "NoSuchBucket", "The bucket does not exist."}
	errNoKey          = &failure{404, "NoSuchKey", "The object does not exist."}
	errNoLength       = &failure{411, "MissingContentLength", "The length of the body is missing."}
	errNoUpload       = &failure{404, "NoSuchUpload", "The upload does not exist, or has been completed or aborted."}
	errNotMatched     = &failure{412, "PreconditionFailed", "The object has changed."}
	errNotImplemented = &failure{501, "NotImplemented", "This server does not do this: it serves plain objects."}
	errPartOrder      = &failure{400, "InvalidPartOrder", "Parts are not in ascending order."}
	errRange          = &failure{416, "InvalidRange", "The range begins after the object's end."}
	errReader         = &failure{403, "AccessDenied", "The credentials may only read."}
	errSkewed         = &failure{403, "RequestTimeTooSkewed", "The request's time is too far from the server's, or it has expired."}
	errTooLarge       = &failure{400, "EntityTooLarge", "The body is larger than 5 GiB."}
	errTooSmall       = &failure{400, "EntityTooSmall", "A part other than the last is smaller than 5 MiB."}
	errUnknownKey     = &failure{403, "InvalidAccessKeyId", "The access key does not exist."}
	errUnsignedHeader = &failure{403, "AccessDenied", "The host, or an x-amz- header, is not signed."}
	errWrongDigest    = &failure{400, "BadDigest", "The body is not what its digest says."}
	errWrongLength    = &failure{400, "IncompleteBody", "The length of the body differs from the announced one."}
	errWrongSignature = &failure{403, "SignatureDoesNotMatch", "The signature does not match the request and the key."}
	errFull           = &failure{507, "InsufficientStorage", "The disk is full."}
)

// request is one request, signed by a key of its bucket.
type request struct {
	*store
	w           http.ResponseWriter
	r           *http.Request
	query       url.Values
	bucket, key string
	own         string // the bucket that the access key is of
	signature   signature
}

// ServeHTTP answers a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	control := http.NewResponseController(w)
	r.Body = &stalling{r.Body, func() { _ = control.SetReadDeadline(s.now().Add(stallTime)) }}
	q := &request{store: s.store, w: &stallingWriter{w, func() { _ = control.SetWriteDeadline(s.now().Add(stallTime)) }}, r: r}
	w.Header().Set("Server", "entrain")
	err := s.admit(q)
	if err == nil {
		err = q.answer()
	}
	s.faults.note(s, q, err)
	if err != nil {
		q.fail(err)
	}
}

// stalling is a body that gives up when its sender stalls, however slowly the whole arrives.
type stalling struct {
	io.ReadCloser
	extend func()
}

func (s *stalling) Read(b []byte) (int, error) {
	s.extend()
	return s.ReadCloser.Read(b)
}

// stallingWriter is an answer that gives up when its reader stalls.
type stallingWriter struct {
	http.ResponseWriter
	extend func()
}

func (s *stallingWriter) Write(b []byte) (int, error) {
	s.extend()
	return s.ResponseWriter.Write(b)
}

// admit finds out what a request is about and whether its signer may do that.
func (s *Server) admit(q *request) (err error) {
	if q.query, err = url.ParseQuery(q.r.URL.RawQuery); err != nil {
		return errBadQuery
	}
	if q.signature, err = readSignature(q.r, q.query); err != nil {
		return err
	}
	own, write := strings.CutPrefix(q.signature.access, writer)
	if read := false; !write {
		if own, read = strings.CutPrefix(q.signature.access, reader); !read {
			return errUnknownKey
		}
	}
	if s.Location(own, write).Check() != nil {
		return errUnknownKey
	}
	q.own = own
	if err := q.signature.check(q.r, secretOf(s.config.Secret, q.signature.access), s.now()); err != nil {
		return err
	}
	q.bucket, q.key, _ = strings.Cut(strings.TrimPrefix(q.r.URL.Path, "/"), "/")
	if q.bucket == "" {
		q.bucket = own // to list the buckets
	}
	reads := q.r.Method == http.MethodGet || q.r.Method == http.MethodHead
	switch {
	case q.bucket != own:
		return &failure{errDenied.status, errDenied.code, fmt.Sprintf("The credentials are those of bucket %q, and of no other.", own)}
	case !reads && !write:
		return errReader
	}
	making := q.r.Method == http.MethodPut && q.key == "" && len(q.query) == 0
	if !making && !q.has(q.bucket) {
		return errNoBucket
	}
	for name := range q.query {
		if strings.HasPrefix(name, "X-Amz-") || name == "x-id" {
			q.query.Del(name) // the signature, and a hint for logs
		}
	}
	return nil
}

// asks reports whether the query has all the names given, and otherwise only optional ones.
func (q *request) asks(names string, optional ...string) bool {
	required := strings.Fields(names)
	for name := range q.query {
		if !slices.Contains(required, name) && !slices.Contains(optional, name) {
			return false
		}
	}
	return !slices.ContainsFunc(required, func(name string) bool { return !q.query.Has(name) })
}

// answer does what a request asks for. What is not in this table is not implemented.
func (q *request) answer() error {
	copies := q.r.Header.Get("X-Amz-Copy-Source") != ""
	root, object := strings.Trim(q.r.URL.Path, "/") == "", q.key != ""
	switch method := q.r.Method; {
	case copies:
	case root && method == http.MethodGet && q.asks(""):
		return q.listBuckets()
	case root:
	case !object && method == http.MethodHead && q.asks(""):
		return nil
	case !object && method == http.MethodPut && q.asks(""):
		return q.make(q.bucket)
	case !object && method == http.MethodGet && q.asks("location"):
		return q.reply(location{})
	case !object && method == http.MethodGet && q.asks("", listing...):
		return q.list()
	case !object && method == http.MethodPost && q.asks("delete"):
		return q.deleteMany()
	case !object:
	case (method == http.MethodGet || method == http.MethodHead) && q.asks(""):
		return q.get()
	case method == http.MethodPut && q.asks(""):
		return q.put()
	case method == http.MethodDelete && q.asks(""):
		return q.delete()
	case method == http.MethodPost && q.asks("uploads"):
		return q.createUpload()
	case method == http.MethodPut && q.asks("uploadId partNumber"):
		return q.uploadPart()
	case method == http.MethodPost && q.asks("uploadId"):
		return q.completeUpload()
	case method == http.MethodDelete && q.asks("uploadId"):
		return q.abortUpload()
	}
	return errNotImplemented
}

// namespace is the XML namespace of S3's answers.
const namespace = "http://s3.amazonaws.com/doc/2006-03-01/"

type location struct {
	XMLName xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ LocationConstraint"`
}

// reply answers with an XML document.
func (q *request) reply(document any) error {
	b, err := xml.Marshal(document)
	if err != nil {
		return err
	}
	q.w.Header().Set("Content-Type", "application/xml")
	_, _ = io.WriteString(q.w, xml.Header)
	_, _ = q.w.Write(b)
	return nil
}

// xmlError is an error as S3 sends it.
type xmlError struct {
	XMLName  xml.Name `xml:"Error"`
	Code     string
	Message  string
	Resource string
}

// fail answers with an error.
func (q *request) fail(err error) {
	f := errInternal
	if !errors.As(err, &f) && full(err) {
		f = errFull
	}
	if f == errSkewed {
		// Clients set their clock by this header.
		q.w.Header().Set("Date", time.Now().UTC().Format(http.TimeFormat))
	}
	q.w.Header().Set("Content-Type", "application/xml")
	q.w.WriteHeader(f.status)
	if q.r.Method == http.MethodHead {
		return
	}
	b, _ := xml.Marshal(xmlError{Code: f.code, Message: f.message, Resource: q.r.URL.Path})
	_, _ = q.w.Write(append([]byte(xml.Header), b...))
}

// xmlBytesMax bounds the body of a request that is XML: ten thousand parts, or a thousand keys.
const xmlBytesMax = 4 << 20

// readXML reads the body of a request into a document.
func (q *request) readXML(document any) error {
	p, err := newPayload(q.r, &q.signature)
	if err != nil {
		return err
	}
	if p.left > xmlBytesMax {
		return errBadXML
	}
	b, err := io.ReadAll(p)
	if err != nil {
		return err
	}
	if xml.Unmarshal(b, document) != nil {
		return errBadXML
	}
	return nil
}
