package solana

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"

	"github.com/entrain-network/entrain/chain/solana"
	"github.com/entrain-network/entrain/retry"
)

// Bounds of a subscription.
const (
	// quiet is the number of polls after which a run is looked at although its endpoint tells of
	// no change.
	quiet = 10
	// pingEvery shows whether a connection that says nothing still stands, pongWait for how long the
	// other side may be silent.
	pingEvery = 15 * time.Second
	pongWait  = 40 * time.Second
	// newsBytesMax bounds what an endpoint says at once.
	newsBytesMax = 64 << 10
)

// subscribing is how subscriptions are repeated where endpoints have none, or lose them.
var subscribing = retry.Policy{Min: time.Second, Max: 2 * time.Minute}

// bell is an endpoint's word that a run has changed. Nothing but when to look depends on it.
type bell struct {
	rung chan struct{} // holds one
	slot atomic.Uint64 // the newest slot in which the run has changed, as the endpoint says
	live atomic.Bool   // an endpoint tells of changes
	drop atomic.Pointer[context.CancelFunc]
}

func newBell() *bell { return &bell{rung: make(chan struct{}, 1)} }

func (b *bell) ring() {
	select {
	case b.rung <- struct{}{}:
	default:
	}
}

// miss leaves an endpoint that did not tell of a change.
func (b *bell) miss() {
	if drop := b.drop.Load(); drop != nil {
		(*drop)()
	}
}

// listen subscribes to the part of an account until the context ends. Endpoints may have no
// WebSocket.
func (c *Client) listen(ctx context.Context, b *bell, at solana.Address, of part) {
	for failures := 0; ctx.Err() == nil; failures++ {
		begun := time.Now()
		err := c.hear(ctx, b, at, of)
		b.live.Store(false)
		b.slot.Store(0)
		b.ring() // for the watcher to poll
		c.log.Debug("a subscription has ended", "err", err)
		if time.Since(begun) > subscribing.Max {
			failures = 0
		}
		if retry.Wait(ctx, subscribing.Pause(failures)) != nil {
			return
		}
	}
}

// hear subscribes at the current endpoint, and rings the bell whenever that tells of a change.
func (c *Client) hear(ctx context.Context, b *bell, at solana.Address, of part) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	b.drop.Store(&cancel)
	conn, err := dial(ctx, c.endpoints[c.current.Load()%uint64(len(c.endpoints))])
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	conn.SetReadLimit(newsBytesMax)
	hold := func(string) error { return conn.SetReadDeadline(time.Now().Add(pongWait)) }
	conn.SetPongHandler(hold)
	err = conn.WriteJSON(map[string]any{"jsonrpc": "2.0", "id": 1, "method": "accountSubscribe", "params": []any{
		at, map[string]any{"encoding": "base64", "commitment": commitment, "dataSlice": of}}})
	if err != nil {
		return err
	}
	c.start(ctx, func(ctx context.Context) {
		for retry.Wait(ctx, pingEvery) == nil {
			conn.WriteControl(websocket.PingMessage, nil, time.Now().Add(pingEvery))
		}
	})
	for {
		if err := hold(""); err != nil {
			return err
		}
		var news struct {
			Error  *rpcError `json:"error"`
			Params struct {
				Result struct {
					Context struct {
						Slot uint64 `json:"slot"`
					} `json:"context"`
				} `json:"result"`
			} `json:"params"`
		}
		if err := conn.ReadJSON(&news); err != nil {
			return err
		}
		if news.Error != nil {
			return news.Error
		}
		b.live.Store(true)
		if slot := news.Params.Result.Context.Slot; slot > b.slot.Load() {
			b.slot.Store(slot)
			b.ring()
		}
	}
}

// dial connects to the WebSocket of an endpoint: at its URL, where providers have it, or at the
// port after it, where validators do.
func dial(ctx context.Context, endpoint string) (*websocket.Conn, error) {
	u, err := url.Parse(endpoint)
	if err != nil {
		return nil, err
	}
	u.Scheme = map[string]string{"http": "ws", "https": "wss"}[u.Scheme]
	d := websocket.Dialer{Proxy: http.ProxyFromEnvironment, HandshakeTimeout: answerWait}
	conn, res, err := d.DialContext(ctx, u.String(), nil)
	if res != nil {
		res.Body.Close()
	}
	port, bad := strconv.Atoi(u.Port())
	if err == nil || bad != nil {
		return conn, err
	}
	u.Host = net.JoinHostPort(u.Hostname(), strconv.Itoa(port+1))
	if conn, res, err = d.DialContext(ctx, u.String(), nil); res != nil {
		res.Body.Close()
	}
	return conn, err
}
