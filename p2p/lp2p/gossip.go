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

// joinGossip joins the run's topic until n.closing ends.
func (n *Network) joinGossip() error {
	name := topicName(n.options.Run)
	filter := pubsub.WrapLimitSubscriptionFilter(pubsub.NewAllowlistSubscriptionFilter(name), subscriptionsMax)
	score, thresholds := n.scoring()
	ps, err := pubsub.NewGossipSub(n.closing, n.host,
		pubsub.WithMessageSignaturePolicy(pubsub.StrictSign),
		pubsub.WithMaxMessageSize(rpcBytesMax),
		pubsub.WithFloodPublish(true), // the first hop determines how soon everyone has a message
		pubsub.WithGossipSubParams(spreading()),
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
	// The validator passes messages to the Handler. Relaying without a subscription keeps the
	// participant in the topic's mesh.
	if _, err := n.topic.Relay(); err != nil {
		return fmt.Errorf("gossip: %w", err)
	}
	return nil
}

// spreading returns gossipsub's parameters for messages that authors send to all their neighbours.
// Passing them on serves the few others, so it takes a mesh of four neighbours, not six to twelve,
// and a mention to six others of what was heard, not to a quarter of all.
func spreading() pubsub.GossipSubParams {
	p := pubsub.DefaultGossipSubParams()
	p.D, p.Dlo, p.Dhi, p.Dscore, p.Dout = 4, 3, 6, 2, 1
	p.GossipFactor = 0.03 // Dlazy is more among up to 200
	return p
}

// scoring makes gossipsub prefer neighbours with few offences, which include rejected messages and
// misuse of gossipsub itself (D. Vyzovitis et al., "GossipSub: Attack-Resilient Message
// Propagation", 2020, section 4). It ignores gossipsub's own count of invalid messages, which would
// silence a peer before it is banned, and addresses, which many participants may share.
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

// judge validates messages of the topic, whose signature and author pubsub has verified.
func (n *Network) judge(_ context.Context, via peer.ID, m *pubsub.Message) pubsub.ValidationResult {
	if via == n.host.ID() {
		return pubsub.ValidationAccept // our own
	}
	author, err := publicKey(m.GetFrom())
	switch {
	case err != nil, len(m.Data) == 0, len(m.Data) > p2p.MaxGossip:
		return pubsub.ValidationReject
	case !n.gate.allows(author):
		return pubsub.ValidationIgnore // perhaps a member that this participant does not know yet
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

// Publish implements p2p.Network.
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

// rejections charges neighbours for messages that gossipsub or the Handler rejects, and counts what
// is sent. It is a pubsub.RawTracer that ignores other events.
type rejections struct{ network *Network }

// RejectMessage is called for every rejected message.
func (r *rejections) RejectMessage(m *pubsub.Message, reason string) {
	switch reason {
	case pubsub.RejectMissingSignature, pubsub.RejectInvalidSignature, pubsub.RejectUnexpectedAuthInfo, pubsub.RejectValidationFailed:
		if k, err := publicKey(m.ReceivedFrom); err == nil {
			r.network.charge(k, p2p.Rejected)
		}
	}
}

// SendRPC counts the gossip messages of a frame to a neighbour.
func (r *rejections) SendRPC(rpc *pubsub.RPC, _ peer.ID) {
	if count := r.network.options.Count; count != nil {
		for _, m := range rpc.GetPublish() {
			count(CountGossip, len(m.Data))
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
func (*rejections) DropRPC(*pubsub.RPC, peer.ID)             {}
func (*rejections) UndeliverableMessage(*pubsub.Message)     {}
