package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/entrain-network/entrain/p2p"
)

// peersCollector shows Prometheus the current measurements of each peer.
type peersCollector struct{ peers func() []p2p.PeerStatus }

var (
	peerLabels = []string{"peer"}
	peerUp     = prometheus.NewDesc("entrain_peer_connected",
		"1 for a direct connection, 0.5 through a relay, 0 for none.", peerLabels, nil)
	peerRTT = prometheus.NewDesc("entrain_peer_rtt_seconds",
		"Smoothed round trip.", peerLabels, nil)
	peerDown = prometheus.NewDesc("entrain_peer_down_bytes_per_second",
		"Rate of blobs from the peer while some are in flight.", peerLabels, nil)
	peerUpload = prometheus.NewDesc("entrain_peer_up_bytes_per_second",
		"Rate of blobs to the peer while some are in flight.", peerLabels, nil)
	peerCame = prometheus.NewDesc("entrain_peer_received_bytes_total",
		"Bytes of blobs from the peer.", peerLabels, nil)
	peerSent = prometheus.NewDesc("entrain_peer_sent_bytes_total",
		"Bytes of blobs and answers to the peer.", peerLabels, nil)
	peerWeight = prometheus.NewDesc("entrain_peer_offence_weight",
		"Weight of its unforgiven offences; at 100 it is banned.", peerLabels, nil)
)

// peersShown bounds the peers in a scrape. In a large run there would be a flood of series.
const peersShown = 256

// Describe implements prometheus.Collector.
func (c peersCollector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{peerUp, peerRTT, peerDown, peerUpload, peerCame, peerSent, peerWeight} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (c peersCollector) Collect(to chan<- prometheus.Metric) {
	list := c.peers()
	for _, p := range list[:min(len(list), peersShown)] {
		key := p.Key.String()
		send := func(d *prometheus.Desc, kind prometheus.ValueType, v float64) {
			to <- prometheus.MustNewConstMetric(d, kind, v, key)
		}
		send(peerUp, prometheus.GaugeValue, map[string]float64{"direct": 1, "relay": 0.5}[p.Way])
		send(peerRTT, prometheus.GaugeValue, p.RTT.Seconds())
		send(peerDown, prometheus.GaugeValue, p.Down)
		send(peerUpload, prometheus.GaugeValue, p.Up)
		send(peerCame, prometheus.CounterValue, float64(p.Received))
		send(peerSent, prometheus.CounterValue, float64(p.Sent))
		send(peerWeight, prometheus.GaugeValue, p.Weight)
	}
}

// PeersFrom adds the peers that f returns to every scrape. Call it before Handler.
func (g *Gauges) PeersFrom(f func() []p2p.PeerStatus) { g.peers = f }
