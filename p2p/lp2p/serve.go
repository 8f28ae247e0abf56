package lp2p

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/libp2p/go-libp2p/core/network"

	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/p2p"
	"github.com/entrain-network/entrain/retry"
	"github.com/entrain-network/entrain/wire"
)

// Protocols of package p2p. A new version has a new name.
const (
	blobProtocol = "/entrain/blob/1"
	askProtocol  = "/entrain/ask/1"
)

// serveBlob answers a stream of the blob protocol.
func (n *Network) serveBlob(s network.Stream) {
	n.serve(s, func(from key.Public, r io.Reader, send sender) error {
		var b [p2p.QueryBytes]byte
		if _, err := io.ReadFull(r, b[:]); err != nil {
			return err
		}
		q, err := p2p.ParseQuery(b[:])
		if err != nil {
			n.charge(from, p2p.Garbled)
			return err
		}
		return p2p.Serve(n.source, n.options.Run, q, func(status p2p.Status, data []byte) error {
			if n.options.Allot == nil || n.options.Allot(from, len(data)) {
				return send(status, data)
			}
			return cmp.Or(send(p2p.StatusRefused, nil), errEnough)
		})
	})
}

// serveAsk answers a stream of the ask protocol.
func (n *Network) serveAsk(s network.Stream) {
	n.serve(s, func(from key.Public, r io.Reader, send sender) error {
		run, question, err := readQuestion(r)
		switch {
		case err == errQuestionLength:
			n.charge(from, p2p.Garbled)
			return err
		case err != nil:
			return err
		case run != n.options.Run:
			return send(p2p.StatusOtherRun, nil)
		}
		answer := n.options.Handler.Answer(from, question)
		if answer == nil || len(answer) > p2p.MaxAnswer {
			return send(p2p.StatusRefused, nil)
		}
		return send(p2p.StatusOK, answer)
	})
}

var errQuestionLength = fmt.Errorf("question: %w", p2p.ErrTooLarge)

// readQuestion parses a request of the ask protocol.
func readQuestion(r io.Reader) (run wire.Hash, question []byte, err error) {
	var head [32 + 4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return run, nil, err
	}
	length := binary.LittleEndian.Uint32(head[32:])
	if length > p2p.MaxRequest {
		return run, nil, errQuestionLength
	}
	question = make([]byte, length)
	_, err = io.ReadFull(r, question)
	return wire.Hash(head[:32]), question, err
}

// appendQuestion is the inverse of readQuestion.
func appendQuestion(dst []byte, run wire.Hash, question []byte) []byte {
	dst = append(dst, run[:]...)
	return wire.AppendVar(dst, question)
}

// sender sends one answer.
type sender func(p2p.Status, []byte) error

// errEnough ends an answer whose rest is not sent. The peer was told that this participant is busy,
// or that it refuses.
var errEnough = errors.New("a limit of the upload is reached")

// serve admits a request, calls answer to answer it, and ends the stream. After an error it cuts
// the stream, so that a peer that sends more than a request does not hold it.
func (n *Network) serve(s network.Stream, answer func(key.Public, io.Reader, sender) error) {
	from, err := publicKey(s.Conn().RemotePeer())
	if err != nil || !n.enter() {
		s.Reset()
		return
	}
	defer n.leave()
	w := bufio.NewWriter(s)
	queue := uploadPatience
	if n.guests.strange(from) {
		queue = strangersQueue
	}
	send := func(status p2p.Status, data []byte) error {
		wait, ok := n.upload.take(p2p.AnswerHeadBytes+len(data), time.Now(), queue)
		if !ok {
			status, data = p2p.StatusBusy, nil
		}
		if err := retry.Wait(n.closing, wait); err != nil {
			return err
		}
		if err := s.SetWriteDeadline(time.Now().Add(n.times.stall)); err != nil {
			return err
		}
		var head [p2p.AnswerHeadBytes]byte
		w.Write(p2p.AppendAnswerHead(head[:0], status, len(data)))
		w.Write(data)
		n.traffic.change(from, func(b *bothWays, now time.Time) { b.up.Begin(now) })
		err := w.Flush() // reports the errors of both
		n.traffic.change(from, func(b *bothWays, now time.Time) { b.up.Move(len(data), now); b.up.End(now) })
		if err == nil && !ok {
			return errEnough
		}
		return err
	}
	admission, wait := n.guests.enter(from, time.Now())
	switch admission {
	case flooding:
		n.charge(from, p2p.Flooded)
		err = send(p2p.StatusBusy, nil)
	case busy:
		err = send(p2p.StatusBusy, nil)
	default:
		defer n.guests.leave(from)
		if err = retry.Wait(n.closing, wait); err != nil {
			break
		}
		if err = s.SetReadDeadline(time.Now().Add(requestTimeout)); err == nil {
			err = answer(from, s, send)
		}
	}
	if err != nil && err != errEnough {
		s.Reset()
		return
	}
	s.Close()
}
