package lp2p

import (
	"time"

	"github.com/libp2p/go-libp2p/core/metrics"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
)

// counting is a metrics.Reporter that passes on what is sent, and remembers nothing.
type counting func(what string, bytes int)

// LogSentMessageStream implements metrics.Reporter.
func (c counting) LogSentMessageStream(bytes int64, p protocol.ID, _ peer.ID) {
	c(string(p), int(bytes))
}

func (counting) LogRecvMessageStream(int64, protocol.ID, peer.ID)      {}
func (counting) LogSentMessage(int64)                                  {}
func (counting) LogRecvMessage(int64)                                  {}
func (counting) GetBandwidthForPeer(peer.ID) (s metrics.Stats)         { return s }
func (counting) GetBandwidthForProtocol(protocol.ID) (s metrics.Stats) { return s }
func (counting) GetBandwidthTotals() (s metrics.Stats)                 { return s }
func (counting) GetBandwidthByPeer() map[peer.ID]metrics.Stats         { return nil }
func (counting) GetBandwidthByProtocol() map[protocol.ID]metrics.Stats { return nil }
func (counting) Reset()                                                {}
func (counting) TrimIdle(time.Time)                                    {}
