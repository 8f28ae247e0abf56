package server

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/entrain-network/entrain/bucket"
)

// Config is what a server is started with.
type Config struct {
	Dir       string // where objects are kept; made if there is none
	Addr      string // host:port to listen on; "" is a free port of 127.0.0.1
	Access    string // of the root; "" is "root"
	Secret    string // of the root; all accounts follow from it
	Cert, Key string // files for TLS, or empty
}

// readyMax is how long a server may take until it listens.
const readyMax = 30 * time.Second

// stopMax is how long it may take to end.
const stopMax = 5 * time.Second

// Server is a running server.
type Server struct {
	config  Config
	addr    string
	process *exec.Cmd
	input   io.WriteCloser
	errors  bytes.Buffer // what it wrote to its standard error; read when it has ended
	ended   chan struct{}
}

// Start starts a server and waits until it answers. The program must call [Child] first of all. The server ends with Close, with ctx, or with this
// process.
func Start(ctx context.Context, c Config) (*Server, error) {
	if c.Addr == "" {
		c.Addr = "127.0.0.1:0"
	}
	if c.Access == "" {
		c.Access = "root"
	}
	if c.Secret == "" {
		return nil, errors.New("start S3 server: no secret is given for its root account")
	}
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("start S3 server: %w", err)
	}
	s := &Server{config: c, process: exec.CommandContext(ctx, program), ended: make(chan struct{})}
	s.process.Env = append(os.Environ(), childVariable+"=1")
	s.process.Stderr = &s.errors
	s.process.WaitDelay = stopMax
	if s.input, err = s.process.StdinPipe(); err != nil {
		return nil, fmt.Errorf("start S3 server: %w", err)
	}
	output, err := s.process.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start S3 server: %w", err)
	}
	if err := s.process.Start(); err != nil {
		return nil, fmt.Errorf("start S3 server: %w", err)
	}
	first := make(chan string, 1)
	go func() {
		r := bufio.NewReader(output)
		line, _ := r.ReadString('\n')
		first <- strings.TrimSpace(line)
		_, _ = io.Copy(io.Discard, r)
		_ = s.process.Wait()
		close(s.ended)
	}()
	return s, s.begin(ctx, first)
}

// begin gives the process its order and waits until it listens.
func (s *Server) begin(ctx context.Context, first <-chan string) error {
	c := s.config
	b, err := json.Marshal(order{c.Dir, c.Addr, c.Access, c.Secret, c.Cert, c.Key})
	if err != nil {
		return err
	}
	if _, err := s.input.Write(append(b, '\n')); err != nil {
		s.Close()
		return fmt.Errorf("start S3 server: %w", err)
	}
	timer := time.NewTimer(readyMax)
	defer timer.Stop()
	select {
	case s.addr = <-first:
	case <-timer.C:
	case <-ctx.Done():
	}
	if s.addr == "" {
		s.Close()
		return fmt.Errorf("start S3 server in %s on %s: it ended, or did not listen within %v: %s", c.Dir, c.Addr, readyMax, strings.TrimSpace(s.errors.String()))
	}
	return nil
}

// Addr is where the server listens: host:port.
func (s *Server) Addr() string { return s.addr }

// Done is closed when the server has ended, however that came.
func (s *Server) Done() <-chan struct{} { return s.ended }

// Close ends the server and waits for it.
func (s *Server) Close() {
	s.input.Close()
	timer := time.NewTimer(stopMax)
	defer timer.Stop()
	select {
	case <-s.ended:
	case <-timer.C:
		_ = s.process.Process.Kill()
		<-s.ended
	}
}

// Kill ends the server as a power cut would.
func (s *Server) Kill() {
	_ = s.process.Process.Kill()
	<-s.ended
	s.input.Close()
}

// Location returns the location of a bucket, for whoever may write to it, or only read.
func (s *Server) Location(name string, write bool) bucket.Location {
	access, secret := Credentials(s.config.Secret, name, write)
	return bucket.Location{Endpoint: s.addr, Bucket: name, AccessKey: bucket.Secret(access), SecretKey: bucket.Secret(secret), Secure: s.config.Cert != ""}
}

// Make makes a bucket, unless there is one, and returns its locations for its owner and, to be published, for everybody.
func (s *Server) Make(ctx context.Context, client *bucket.Client, name string) (own, public bucket.Location, err error) {
	own, public = s.Location(name, true), s.Location(name, false)
	return own, public, client.Make(ctx, own, policy(name))
}
