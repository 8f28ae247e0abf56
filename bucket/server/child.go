package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/versity/versitygw/backend/meta"
	"github.com/versity/versitygw/backend/posix"
	"github.com/versity/versitygw/embedgw"
	"github.com/versity/versitygw/s3api"
)

// childVariable is in the environment of a process that is to be a server.
const childVariable = "ENTRAIN_S3_SERVER"

// order is what a server's process reads first on its input. It is not among its arguments, which everybody on the machine can read.
type order struct {
	Dir, Addr      string
	Access, Secret string // of the root
	Cert, Key      string // files for TLS, or empty
}

// Limits of the gateway.
const (
	connectionsMax = 4096
	requestsMax    = 1024
	partsMax       = 10_000 // of a multipart upload, as Amazon has it
)

// Child makes the process a server, and does not return, if [Start] made the process for that; in any other process it does nothing. A program that
// uses Start calls it first of all in main, and a test that does in TestMain.
func Child() {
	if os.Getenv(childVariable) == "" {
		return
	}
	// Only the address goes to the parent: whatever else the gateway has to say is no part of it.
	out := os.Stdout
	os.Stdout = os.Stderr
	if err := serveChild(os.Stdin, out); err != nil {
		fmt.Fprintln(os.Stderr, "s3 server:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// serveChild reads an order and serves until the input ends, as it does when the parent dies, or a signal comes.
func serveChild(in io.Reader, out io.Writer) error {
	var o order
	d := json.NewDecoder(in)
	if err := d.Decode(&o); err != nil {
		return fmt.Errorf("read what to serve: %w", err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, d.Buffered())
		_, _ = io.Copy(io.Discard, in)
		cancel()
	}()
	err := serve(ctx, o, func(addr string) { fmt.Fprintln(out, addr) })
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// serve runs the gateway until ctx ends. It changes the working directory.
func serve(ctx context.Context, o order, ready func(addr string)) error {
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return err
	}
	objects, attributes := filepath.Join(dir, "objects"), filepath.Join(dir, "attributes")
	for _, d := range []string{objects, attributes} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return err
		}
	}
	// Beside the objects rather than as extended attributes of their files, which not all file systems have.
	sidecar, err := meta.NewSideCar(attributes)
	if err != nil {
		return err
	}
	gateway, err := posix.New(objects, sidecar, posix.PosixOpts{SideCarDir: attributes, ValidateBucketNames: true, NewDirPerm: 0o700})
	if err != nil {
		return err
	}
	defer gateway.Shutdown()
	addr, err := freeAddr(o.Addr)
	if err != nil {
		return err
	}
	return embedgw.RunVersityGW(ctx, gateway, &embedgw.Config{
		RootUserAccess: o.Access, RootUserSecret: o.Secret,
		Ports:    []string{addr},
		CertFile: o.Cert, KeyFile: o.Key,
		MaxConnections: connectionsMax, MaxRequests: requestsMax, MultipartMaxParts: partsMax,
		Quiet:      true,
		IAMService: accounts{o.Secret},
		S3Options:  []s3api.Option{s3api.WithOnListen(func() { ready(addr) })},
	})
}

// freeAddr replaces port 0 by a port that is free.
func freeAddr(addr string) (string, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "", err
	}
	if port != "0" {
		return addr, nil
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return "", err
	}
	_, port, err = net.SplitHostPort(l.Addr().String())
	return net.JoinHostPort(host, port), errors.Join(err, l.Close())
}
