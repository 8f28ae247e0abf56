package lp2p

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/protocol"

	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/p2p"
)

// Ask implements p2p.Network. Besides p2p's errors, done may get those of the connection.
func (n *Network) Ask(ctx context.Context, to key.Public, question []byte, done func([]byte, error)) {
	question = bytes.Clone(question)
	ok := n.start(func() {
		ctx, cancel := n.within(ctx)
		defer cancel()
		answer, err := n.ask(ctx, to, question)
		switch {
		case err == nil:
		case n.closing.Err() != nil: // ctx ends a moment later
			answer, err = nil, p2p.ErrClosed
		case ctx.Err() != nil:
			answer, err = nil, context.Cause(ctx)
		}
		done(answer, err)
	})
	if !ok {
		go done(nil, p2p.ErrClosed)
	}
}

func (n *Network) ask(ctx context.Context, to key.Public, question []byte) ([]byte, error) {
	if len(question) > p2p.MaxRequest {
		return nil, fmt.Errorf("ask %d bytes: %w: the limit is %d", len(question), p2p.ErrTooLarge, p2p.MaxRequest)
	}
	if err := n.outward.acquire(ctx, to); err != nil {
		return nil, err
	}
	defer n.outward.release(to)
	s, cut, err := n.open(ctx, to, askProtocol)
	if err != nil {
		return nil, fmt.Errorf("ask peer %x: %w", to[:4], err)
	}
	defer cut()
	if err := s.SetDeadline(time.Now().Add(askTimeout)); err != nil {
		return nil, fmt.Errorf("ask peer %x: %w", to[:4], err)
	}
	answer, err := exchange(s, appendQuestion(nil, n.options.Run, question))
	if err != nil {
		if errors.Is(err, p2p.ErrMalformed) {
			n.charge(to, p2p.Garbled)
		}
		return nil, fmt.Errorf("ask peer %x: %w", to[:4], err)
	}
	return answer, nil
}

// exchange sends a request and reads one answer.
func exchange(s network.Stream, request []byte) ([]byte, error) {
	if _, err := s.Write(request); err != nil {
		return nil, readError(err)
	}
	if err := s.CloseWrite(); err != nil {
		return nil, readError(err)
	}
	return readAnswer(s, nil, p2p.MaxAnswer)
}

// open opens a stream to a peer and dials it if necessary. ctx cuts the stream when it ends, and so
// does cut, which the caller must call.
func (n *Network) open(ctx context.Context, to key.Public, p protocol.ID) (s network.Stream, cut func(), err error) {
	id, err := peerID(to)
	if err != nil {
		return nil, nil, err
	}
	if n.host.Network().Connectedness(id) != network.Connected && (!n.gate.allows(to) || len(n.host.Peerstore().Addrs(id)) == 0) {
		return nil, nil, p2p.ErrUnknownPeer
	}
	dial, cancel := context.WithTimeout(network.WithAllowLimitedConn(ctx, "entrain"), dialTimeout)
	defer cancel()
	s, err = n.host.NewStream(dial, id, p)
	if err != nil {
		return nil, nil, err
	}
	stop := context.AfterFunc(ctx, func() { s.Reset() })
	return s, func() { stop(); s.Reset() }, nil
}

// readAnswer reads one answer of at most limit bytes into dst, which it grows if necessary. The
// error may be one of p2p's or the stream's.
func readAnswer(r io.Reader, dst []byte, limit int) ([]byte, error) {
	var head [p2p.AnswerHeadBytes]byte
	if _, err := io.ReadFull(r, head[:1]); err != nil {
		return nil, readError(err)
	}
	if err := p2p.Status(head[0]).Err(); err != nil {
		return nil, err
	}
	if _, err := io.ReadFull(r, head[1:]); err != nil {
		return nil, readError(err)
	}
	length := binary.LittleEndian.Uint32(head[1:])
	if uint64(length) > uint64(limit) {
		return nil, fmt.Errorf("an answer of %d bytes where %d are allowed: %w", length, limit, p2p.ErrMalformed)
	}
	if uint64(cap(dst)) < uint64(length) {
		dst = make([]byte, length)
	}
	dst = dst[:length]
	if _, err := io.ReadFull(r, dst); err != nil {
		return nil, readError(err)
	}
	return dst, nil
}

// readError converts a stream's error: a missed deadline becomes ErrStalled.
func readError(err error) error {
	var timeout interface{ Timeout() bool }
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return p2p.ErrStalled
	case errors.Is(err, io.EOF):
		return io.ErrUnexpectedEOF
	}
	return err
}
