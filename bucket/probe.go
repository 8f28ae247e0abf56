package bucket

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
)

// Finding is the outcome of one check on a member's bucket.
type Finding struct {
	What string
	Err  error // nil: the check passed
}

// probePrefix is where Probe writes; no object of a run has this prefix.
const probePrefix = "entrain-probe/"

// Probe checks whether a bucket is fit for a run, with the owner's credentials and with the ones to
// be published: the owner can write and remove an object, everyone can read and list, and no one
// else can write. It removes its objects if it can.
func Probe(ctx context.Context, own, public Store) []Finding {
	random := make([]byte, 16)
	rand.Read(random)
	key := probePrefix + hex.EncodeToString(random)
	body := []byte("written by entrain to see whether this bucket can be used; it may be removed")
	p := probe{ctx: ctx, key: key, body: body}
	p.find("the owner can write", p.put(own, key))
	if p.found[0].Err != nil {
		return p.found // the remaining checks need the object
	}
	p.find("the published credentials can read", p.read(public, key))
	p.find("the published credentials can list", p.list(public, key))
	p.find("what is missing is seen to be missing", p.missing(public, key+"-missing"))
	p.find("the published credentials cannot write", refused(p.put(public, key+"-written"), "they wrote an object: everybody on the chain could"))
	p.find("the published credentials cannot replace", refused(p.put(public, key), "they replaced an object: everybody on the chain could"))
	p.find("the published credentials cannot remove", p.keeps(own, public, key))
	p.find("the owner can remove", p.remove(own, key, key+"-written"))
	return p.found
}

type probe struct {
	ctx   context.Context
	key   string
	body  []byte
	found []Finding
}

func (p *probe) find(what string, err error) { p.found = append(p.found, Finding{what, err}) }

func (p *probe) put(s Store, key string) error {
	return s.Put(p.ctx, key, bytes.NewReader(p.body), int64(len(p.body)), false)
}

func (p *probe) read(s Store, key string) error {
	b, _, err := s.Get(p.ctx, key, 0, 1000)
	if err == nil && !bytes.Equal(b, p.body) {
		err = errors.New("they read other bytes")
	}
	return err
}

func (p *probe) list(s Store, key string) error {
	objects, err := s.List(p.ctx, key, "", 10)
	if err == nil && (len(objects) == 0 || objects[0].Key != key) {
		err = errors.New("the object is not listed")
	}
	return err
}

// missing returns nil if the store reports a missing object as missing. Stores refuse instead when
// the caller may not list.
func (p *probe) missing(s Store, key string) error {
	_, _, err := s.Get(p.ctx, key, 0, 1)
	switch {
	case errors.Is(err, ErrMissing):
		return nil
	case errors.Is(err, ErrRefused):
		return fmt.Errorf("the store refuses access instead, as Amazon does without permission to list: grant s3:ListBucket (%w)", err)
	case err == nil:
		return errors.New("an object that does not exist can be read")
	}
	return err
}

// keeps returns nil if the object remains after others tried to remove it. A store may acknowledge
// a removal that it does not perform.
func (p *probe) keeps(own, public Store, key string) error {
	if err := public.Delete(p.ctx, key); err != nil && !errors.Is(err, ErrRefused) {
		return err
	}
	if _, err := own.Stat(p.ctx, key); errors.Is(err, ErrMissing) {
		return errors.New("they removed an object, and so could anyone on the chain")
	}
	return nil
}

func (p *probe) remove(own Store, keys ...string) error {
	if err := own.Delete(p.ctx, keys...); err != nil {
		return err
	}
	if _, err := own.Stat(p.ctx, keys[0]); !errors.Is(err, ErrMissing) {
		return fmt.Errorf("the object still exists after its removal (%v)", err)
	}
	return nil
}

// refused inverts the outcome of an operation that must be refused.
func refused(err error, otherwise string) error {
	switch {
	case err == nil:
		return errors.New(otherwise)
	case errors.Is(err, ErrRefused):
		return nil
	}
	return err
}
