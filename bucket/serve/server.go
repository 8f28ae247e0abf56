package serve

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"time"

	"github.com/entrain-network/entrain/bucket"
	"github.com/entrain-network/entrain/httpserve"
)

// Config describes a server.
type Config struct {
	Dir       string // of the objects; created if missing, and used by no other process
	Addr      string // host:port to listen on; "" is a free port of 127.0.0.1
	Secret    string // from which the credentials of all buckets follow
	Cert, Key string // files for TLS, or empty
	// Tell, if not nil, takes what the server's owner should know: each fault once. It is called by
	// one goroutine at a time.
	Tell func(string)
}

// Limits of the server. A client that stays within them can still fill the disk, so write
// credentials are for people who may.
const (
	headBytesMax = 32 << 10
	headTime     = 10 * time.Second // to send a request's header
	idleTime     = 2 * time.Minute  // between requests
	stallTime    = time.Minute      // without a byte of a body, in either direction
	stopTime     = 2 * time.Second  // for requests under way when the server is closed
)

// Server is a running server.
type Server struct {
	config Config
	store  *store
	stop   context.CancelFunc
	addr   string
	ended  chan struct{}
	now    func() time.Time
	faults faults
}

// Start starts a server, which runs until Close is called or ctx ends.
func Start(ctx context.Context, c Config) (*Server, error) {
	if c.Secret == "" {
		return nil, errors.New("start S3 server: the root secret is empty")
	}
	if c.Addr == "" {
		c.Addr = "127.0.0.1:0"
	}
	s := &Server{config: c, ended: make(chan struct{}), now: time.Now, faults: faults{tell: c.Tell}}
	var err error
	if s.store, err = openStore(c.Dir); err != nil {
		return nil, fmt.Errorf("start S3 server: %w", err)
	}
	var secure *tls.Config
	if c.Cert != "" {
		pair, err := tls.LoadX509KeyPair(c.Cert, c.Key)
		if err != nil {
			return nil, fmt.Errorf("start S3 server: %w", err)
		}
		secure = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	}
	l, err := net.Listen("tcp", c.Addr)
	if err != nil {
		return nil, fmt.Errorf("start S3 server: %w", err)
	}
	s.addr = l.Addr().String()
	ctx, s.stop = context.WithCancel(ctx)
	go func() {
		defer close(s.ended)
		_ = httpserve.Run(ctx, httpserve.Limit(l, httpserve.Conns(2), httpserve.Stranger), &http.Server{
			Handler: s, TLSConfig: secure, ReadHeaderTimeout: headTime, IdleTimeout: idleTime, MaxHeaderBytes: headBytesMax,
		}, stopTime)
	}()
	return s, nil
}

// Addr returns where the server listens, host:port.
func (s *Server) Addr() string { return s.addr }

// Done returns a channel that is closed when the server has ended.
func (s *Server) Done() <-chan struct{} { return s.ended }

// Close ends the server: requests under way have a moment to finish.
func (s *Server) Close() {
	s.stop()
	<-s.ended
}

// Make creates a bucket, unless it exists, and returns its location for its owner, and for readers.
func (s *Server) Make(name string) (own, public bucket.Location, err error) {
	own, public = s.Location(name, true), s.Location(name, false)
	if err := own.Check(); err != nil {
		return own, public, err
	}
	return own, public, s.store.make(name)
}

// Location returns the location of a bucket with credentials to write, or only to read.
func (s *Server) Location(name string, write bool) bucket.Location {
	access, secret := Credentials(s.config.Secret, name, write)
	return bucket.Location{
		Endpoint: s.addr, Bucket: name, Secure: s.config.Cert != "",
		AccessKey: bucket.Secret(access), SecretKey: bucket.Secret(secret),
	}
}

// Access keys begin with these, followed by the name of their bucket.
const (
	writer = "w-"
	reader = "r-"
)

// Credentials returns the keys with which a bucket is written, or only read.
func Credentials(rootSecret, bucket string, write bool) (access, secret string) {
	access = reader + bucket
	if write {
		access = writer + bucket
	}
	return access, secretOf(rootSecret, access)
}

// secretOf derives the secret of an access key from the root's.
func secretOf(root, access string) string {
	h := hmac.New(sha256.New, []byte(root))
	h.Write([]byte("entrain/bucket/server/" + access))
	return hex.EncodeToString(h.Sum(nil)[:20])
}

// openStore prepares the directories.
func openStore(dir string) (*store, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	s := &store{objects: filepath.Join(dir, "objects"), uploads: filepath.Join(dir, "uploads")}
	return s, s.recover()
}
