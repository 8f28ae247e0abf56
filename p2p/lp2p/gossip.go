package lp2p

import (
	"context"
	"fmt"
	"time"

	pubsub "github.com/libp2p/go-libp2p-pubsub"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"

	"github.com/entrain-network/entrain/p2p"
	"github.com/entrain-network/entrain/wire"
)

// topicName is the gossip topic of a run.
func topicName(run wire.Hash) string { return "/entrain/gossip/1/" + run.String() }

// joinGossip joins the run's topic. Everything ends with n.closing.
func (n *Network) joinGossip() error {
	name := topicName(n.options.Run)
	filter := pubsub.WrapLimitSubscriptionFilter(pubsub.NewAllowlistSubscriptionFilter(name), subscriptionsMax)
	score, thresholds := n.scoring()
	ps, err := pubsub.NewGossipSub(n.closing, n.host,
		pubsub.WithMessageSignaturePolicy(pubsub.StrictSign),
		pubsub.WithMaxMessageSize(rpcBytesMax),
		pubsub.WithFloodPublish(true), // a message's first hop decides how soon all have it
		pubsub.WithSubscriptionFilter(filter),
		pubsub.WithPeerScore(score, thresholds),
		pubsub.WithBlacklist(n.gate),
		pubsub.WithRawTracer(&rejections{network: n}),
		pubsub.WithPeerOutboundQueueSize(queueLength),
		pubsub.WithValidateQueueSize(queueLength),
		pubsub.WithLogger(n.log),
		pubsub.WithRPCLogger(n.log),
	)
	if err != nil {
		return fmt.Errorf("gossip: %w", err)
	}
	if err := ps.RegisterTopicValidator(name, n.judge); err != nil {
		return fmt.Errorf("gossip: %w", err)
	}
	if n.topic, err = ps.Join(name); err != nil {
		return fmt.Errorf("gossip: %w", err)
	}
	// The Handler hears messages as their validator; relaying without a subscription
	// keeps the participant in the topic's mesh.
	if _, err := n.topic.Relay(); err != nil {
		return fmt.Errorf("gossip: %w", err)
	}
	return nil
}

// scoring is by what gossipsub prefers some neighbours to others: offences, rejected
// messages among them, and misuse of gossipsub itself (Vyzovitis et al., "GossipSub:
// Attack-Resilient Message Propagation", 2020, section 4). Its own count of invalid
// messages is not used: it would make gossipsub deaf to a peer before the peer is
// banned. Addresses do not matter, since many participants may share one.
func (n *Network) scoring() (*pubsub.PeerScoreParams, *pubsub.PeerScoreThresholds) {
	params := &pubsub.PeerScoreParams{
		SkipAtomicValidation: true,
		AppSpecificScore: func(id peer.ID) float64 {
			k, err := publicKey(id)
			if err != nil {
				return 0
			}
			return -n.gate.weight(k, time.Now())
		},
		AppSpecificWeight:         1,
		BehaviourPenaltyWeight:    -10,
		BehaviourPenaltyThreshold: 6,
		BehaviourPenaltyDecay:     pubsub.ScoreParameterDecay(10 * time.Minute),
		DecayInterval:             time.Second,
		DecayToZero:               0.01,
		RetainScore:               p2p.BanTime,
	}
	return params, &pubsub.PeerScoreThresholds{
		SkipAtomicValidation: true,
		GossipThreshold:      -50, PublishThreshold: -80, GraylistThreshold: -100,
	}
}

// judge is the validator of the topic. Signature and author have been verified.
func (n *Network) judge(_ context.Context, via peer.ID, m *pubsub.Message) pubsub.ValidationResult {
	if via == n.host.ID() {
		return pubsub.ValidationAccept // our own
	}
	author, err := publicKey(m.GetFrom())
	switch {
	case err != nil, len(m.Data) == 0, len(m.Data) > p2p.MaxGossip:
		return pubsub.ValidationReject
	case !n.gate.allows(author):
		return pubsub.ValidationIgnore // a member the sender may know of, and we not yet
	case !n.enter():
		return pubsub.ValidationIgnore
	}
	defer n.leave()
	switch n.options.Handler.Gossip(author, m.Data) {
	case p2p.Accept:
		return pubsub.ValidationAccept
	case p2p.Reject:
		return pubsub.ValidationReject
	}
	return pubsub.ValidationIgnore
}

// Publish sends a message to all. See p2p.Network.
func (n *Network) Publish(data []byte) error {
	if len(data) == 0 || len(data) > p2p.MaxGossip {
		return fmt.Errorf("publish %d bytes: %w: 1 to %d are allowed", len(data), p2p.ErrTooLarge, p2p.MaxGossip)
	}
	if n.closing.Err() != nil {
		return p2p.ErrClosed
	}
	if err := n.topic.Publish(n.closing, data); err != nil {
		if n.closing.Err() != nil {
			return p2p.ErrClosed
		}
		return fmt.Errorf("publish %d bytes: %w", len(data), err)
	}
	return nil
}

// rejections charges neighbours for what gossipsub or the Handler rejects. It is a
// pubsub.RawTracer, whose other events do not matter.
type rejections struct{ network *Network }

// RejectMessage is called for every message that does not pass, for whatever reason.
func (r *rejections) RejectMessage(m *pubsub.Message, reason string) {
	switch reason {
	case pubsub.RejectMissingSignature, pubsub.RejectInvalidSignature, pubsub.RejectUnexpectedAuthInfo, pubsub.RejectValidationFailed:
		if k, err := publicKey(m.ReceivedFrom); err == nil {
			r.network.charge(k, p2p.Rejected)
		}
	}
}

func (*rejections) OnNewOutboundStream(peer.ID, protocol.ID) {}
func (*rejections) OnClosedOutboundStream(peer.ID)           {}
func (*rejections) Join(string)                              {}
func (*rejections) Leave(string)                             {}
func (*rejections) Graft(peer.ID, string)                    {}
func (*rejections) Prune(peer.ID, string)                    {}
func (*rejections) ValidateMessage(*pubsub.Message)          {}
func (*rejections) DeliverMessage(*pubsub.Message)           {}
func (*rejections) DuplicateMessage(*pubsub.Message)         {}
func (*rejections) ThrottlePeer(peer.ID)                     {}
func (*rejections) RecvRPC(*pubsub.RPC)                      {}
func (*rejections) SendRPC(*pubsub.RPC, peer.ID)             {}
func (*rejections) DropRPC(*pubsub.RPC, peer.ID)             {}
func (*rejections) UndeliverableMessage(*pubsub.Message)     {}
