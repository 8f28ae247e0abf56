package bucket

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/entrain-network/entrain/bucket/sigv4"
)

// request is one request to a store.
type request struct {
	method string
	key    string // in the bucket; "" for the bucket itself
	query  url.Values
	header http.Header // names in canonical form; nil: none
	body   io.ReaderAt
	size   int64 // of the body
}

// refusal is an answer other than success.
type refusal struct {
	status        int
	code, message string
}

// Error returns the status and S3's code and message.
func (r *refusal) Error() string { return fmt.Sprintf("%d %.60q %.200q", r.status, r.code, r.message) }

// do sends a request and follows no redirect. The caller closes the body of the answer.
func (s *s3) do(ctx context.Context, q request) (*http.Response, error) {
	u := s.url(q.key)
	u.RawQuery = sigv4.EncodeQuery(q.query)
	r, err := http.NewRequestWithContext(ctx, q.method, u.String(), nil)
	if err != nil {
		return nil, err
	}
	maps.Copy(r.Header, q.header)
	if r.ContentLength = q.size; q.size > 0 {
		r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(io.NewSectionReader(q.body, 0, q.size)), nil }
		r.Body, _ = r.GetBody()
	}
	if err := s.sign(r, q); err != nil {
		return nil, err
	}
	if r.Header.Get("If-None-Match") != "" {
		// Servers refuse such a put without reading its body, and MinIO then cuts the connection.
		// Send the body only on request: otherwise the refusal can be lost with the connection, and
		// the connection cannot be reused.
		r.Header.Set("Expect", "100-continue")
		r.Close = true
	}
	answer, err := s.transport.RoundTrip(r)
	if err != nil || answer.StatusCode/100 == 2 {
		return answer, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if errors.Is(err, errAllowance) {
		return nil, err
	}
	return nil, readRefusal(answer, text)
}

// readRefusal reads S3's error from an answer, which has none if it answers HEAD or comes from
// something else on the way.
func readRefusal(answer *http.Response, text []byte) *refusal {
	var e struct {
		XMLName       xml.Name `xml:"Error"`
		Code, Message string
	}
	if xml.Unmarshal(text, &e) != nil {
		e.Code, e.Message = answer.Status, string(text[:min(len(text), 200)])
	}
	if code := answer.Header.Get("X-Minio-Error-Code"); code != "" {
		e.Code = code
	}
	return &refusal{answer.StatusCode, e.Code, e.Message}
}

// ask sends a request and reads the answer, an XML document, into document, unless that is nil.
func (s *s3) ask(ctx context.Context, q request, document any) error {
	answer, err := s.do(ctx, q)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || document == nil {
		return err
	}
	if err = xml.Unmarshal(text, document); err != nil {
		// An upload is completed under way, with an error after the status of success.
		if r := readRefusal(answer, text); r.code != answer.Status {
			r.status = http.StatusInternalServerError
			return r
		}
	}
	return err
}

// url returns the address of a key. Stores with many customers serve a bucket at a host of its own,
// all others below a path.
func (s *s3) url(key string) *url.URL {
	u := &url.URL{Scheme: "https", Host: strings.TrimSuffix(s.at.Endpoint, ":443"), Path: "/" + s.at.Bucket + "/" + key}
	if !s.at.Secure {
		u.Scheme, u.Host = "http", strings.TrimSuffix(s.at.Endpoint, ":80")
	}
	if u.Host == "s3.amazonaws.com" {
		u.Host = "s3." + s.region + ".amazonaws.com"
	}
	own := strings.HasSuffix(u.Host, ".amazonaws.com") || strings.HasSuffix(u.Host, ".aliyuncs.com")
	if own && !strings.Contains(s.at.Bucket, ".") { // certificates have no name with another dot
		u.Host, u.Path = s.at.Bucket+"."+u.Host, "/"+key
	}
	u.RawPath = sigv4.EncodePath(u.Path)
	return u
}

// sign signs a request and the hash of its body, which the store compares, if the location has
// credentials.
func (s *s3) sign(r *http.Request, q request) error {
	if s.at.AccessKey == "" {
		return nil
	}
	h := sha256.New()
	if q.size > 0 {
		if _, err := io.Copy(h, io.NewSectionReader(q.body, 0, q.size)); err != nil {
			return err
		}
	}
	now, body := time.Now().UTC(), hex.EncodeToString(h.Sum(nil))
	r.Header.Set("X-Amz-Date", now.Format(sigv4.TimeLayout))
	r.Header.Set("X-Amz-Content-Sha256", body)
	if s.at.Token != "" {
		r.Header.Set("X-Amz-Security-Token", string(s.at.Token))
	}
	names := []string{"host"}
	for name := range r.Header {
		names = append(names, strings.ToLower(name))
	}
	slices.Sort(names)
	scope := strings.Join([]string{now.Format("20060102"), s.region, "s3", sigv4.ScopeEnd}, "/")
	signature := sigv4.Sign(sigv4.Key(string(s.at.SecretKey), scope), sigv4.Algorithm, now, scope,
		sigv4.Hash([]byte(sigv4.Canonical(r, r.URL.RawQuery, names, body))))
	r.Header.Set("Authorization", fmt.Sprintf("%s Credential=%s/%s, SignedHeaders=%s, Signature=%x",
		sigv4.Algorithm, string(s.at.AccessKey), scope, strings.Join(names, ";"), signature))
	return nil
}
