package demo

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"

	"github.com/entrain-network/entrain/bucket"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/lab/adversary"
	"github.com/entrain-network/entrain/node"
	"github.com/entrain-network/entrain/participant/trainer"
	"github.com/entrain-network/entrain/verify"
	"github.com/entrain-network/entrain/wire"
)

// A Cheat makes a dishonest participant of an honest one. The demo's cheating clients are child
// processes that take part as any other, except that their node's configuration passes through
// Wrap. No other command of the program has a way to cheat.
type Cheat struct {
	Kind string       // name of a kind: `entrain demo --help` lists them
	Gang []key.Public // all who cheat together, in one order; nil means that it acts alone
}

// Wrap returns the configuration of a node that cheats.
func (c Cheat) Wrap(cfg node.Config, t *trainer.Trainer) (node.Config, error) {
	self, s := cfg.Key.Public(), t.Spec
	o := adversary.Options{Seed: wire.Sum("entrain/adversary", self[:]), Run: t.Run, NewEngine: t.NewEngine, Gang: c.Gang}
	if cfg.Bucket != nil {
		o.Show = func(allow func(key.Public, bucket.Name) bool) (string, error) {
			return show(cfg.Bucket.Registered, allow)
		}
	}
	switch {
	case s.Trust.VerificationPercent > 0:
		text, err := s.Append(nil)
		if err != nil {
			return cfg, err
		}
		if o.Referee, err = verify.NewReferee(text); err != nil {
			return cfg, err
		}
	case !s.Buckets():
		if k, _ := adversary.Find(c.Kind); !k.Signed() {
			return cfg, errors.New("nobody would notice a cheat: the run has no verification")
		}
	}
	return adversary.Wrap(c.Kind, cfg, o)
}

// show puts a proxy before the bucket at a registered location that answers a read of an object
// only if allow returns true, for as long as the process runs. It does not know who reads. It
// returns the location to announce.
func show(registered string, allow func(key.Public, bucket.Name) bool) (string, error) {
	at, err := bucket.ParseLocation(registered)
	if err != nil {
		return "", err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	target := &url.URL{Scheme: "http", Host: at.Endpoint}
	if at.Secure {
		target.Scheme = "https"
	}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Host = r.In.Host // it is signed
	}}
	prefix := strings.TrimSuffix("/"+at.Bucket+"/"+at.Prefix, "/") + "/"
	go func() {
		_ = http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			n, err := bucket.ParseName(strings.TrimPrefix(r.URL.Path, prefix))
			if err == nil && r.Method == http.MethodGet && !allow(key.Public{}, n) {
				w.WriteHeader(http.StatusNotFound)
				fmt.Fprint(w, "<Error><Code>NoSuchKey</Code></Error>")
				return
			}
			proxy.ServeHTTP(w, r)
		}))
	}()
	at.Endpoint, at.Secure = listener.Addr().String(), false
	return at.Registered()
}
