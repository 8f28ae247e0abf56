package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/entrain-network/entrain/p2p"
)

// peersCollector gives Prometheus what is measured of each peer, as it is at that moment.
type peersCollector struct{ peers func() []p2p.PeerStatus }

var (
	peerLabels = []string{"peer"}
	peerUp     = prometheus.NewDesc("entrain_peer_connected", "1 for a direct connection, 0.5 through a relay, 0 for none.", peerLabels, nil)
	peerRTT    = prometheus.NewDesc("entrain_peer_rtt_seconds", "Smoothed round trip.", peerLabels, nil)
	peerDown   = prometheus.NewDesc("entrain_peer_down_bytes_per_second", "Rate of blobs from the peer while some are under way.", peerLabels, nil)
	peerUpload = prometheus.NewDesc("entrain_peer_up_bytes_per_second", "Rate of blobs to the peer while some are under way.", peerLabels, nil)
	peerCame   = prometheus.NewDesc("entrain_peer_received_bytes_total", "Bytes of blobs from the peer.", peerLabels, nil)
	peerSent   = prometheus.NewDesc("entrain_peer_sent_bytes_total", "Bytes of blobs and answers to the peer.", peerLabels, nil)
	peerWeight = prometheus.NewDesc("entrain_peer_offence_weight", "What its offences weigh that are not forgiven; at 100 it is banned.", peerLabels, nil)
)

// peersShown bounds the peers of which a scrape tells: those of a large run would be a flood of series.
const peersShown = 256

// Describe is part of prometheus.Collector.
func (c peersCollector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{peerUp, peerRTT, peerDown, peerUpload, peerCame, peerSent, peerWeight} {
		to <- d
	}
}

// Collect is part of prometheus.Collector.
func (c peersCollector) Collect(to chan<- prometheus.Metric) {
	list := c.peers()
	for _, p := range list[:min(len(list), peersShown)] {
		key := p.Key.String()
		tell := func(d *prometheus.Desc, kind prometheus.ValueType, v float64) {
			to <- prometheus.MustNewConstMetric(d, kind, v, key)
		}
		tell(peerUp, prometheus.GaugeValue, map[string]float64{"direct": 1, "relay": 0.5}[p.Way])
		tell(peerRTT, prometheus.GaugeValue, p.RTT.Seconds())
		tell(peerDown, prometheus.GaugeValue, p.Down)
		tell(peerUpload, prometheus.GaugeValue, p.Up)
		tell(peerCame, prometheus.CounterValue, float64(p.Received))
		tell(peerSent, prometheus.CounterValue, float64(p.Sent))
		tell(peerWeight, prometheus.GaugeValue, p.Weight)
	}
}

// PeersFrom has Prometheus be told also what f returns, whenever it asks. It must be called before Handler.
func (g *Gauges) PeersFrom(f func() []p2p.PeerStatus) { g.peers = f }
