package bittensor

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"net/http"
	neturl "net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/crypto/blake2b"
)

const (
	// answerMax bounds an endpoint's answer. A runtime's description has about half a megabyte.
	answerMax = 32 << 20
	// lifetime is for how many blocks a transaction is valid.
	lifetime = 64
	// stalled is after how many looks an endpoint that shows no new block is given up.
	stalled = 100
)

// Client talks to one endpoint of a Bittensor chain by JSON-RPC over HTTP. It believes what the
// endpoint says.
type Client struct {
	url     string
	meta    *metadata
	genesis []byte
	spec    uint32 // versions of the runtime and of its transactions
	tx      uint32
}

// reach returns a client that knows nothing of its chain's runtime yet. The URL begins with http or
// ws.
func reach(url string) (*Client, error) {
	c := &Client{url: strings.Replace(url, "ws", "http", 1)}
	if !strings.HasPrefix(url, "ws") {
		c.url = url
	}
	return c, CheckURL(url)
}

// CheckURL returns why a text can be no URL of a node.
func CheckURL(url string) error {
	at, err := neturl.Parse(url)
	if err != nil || at.Host == "" || !slices.Contains([]string{"http", "https", "ws", "wss"}, at.Scheme) {
		return fmt.Errorf("%q is no URL of a node: want wss://HOST or ws://HOST:PORT", url)
	}
	return nil
}

// Dial asks an endpoint, a URL that begins with http or ws, for its chain's runtime.
func Dial(ctx context.Context, url string) (*Client, error) {
	c, err := reach(url)
	if err != nil {
		return nil, err
	}
	var text string
	if err := c.call(ctx, &text, "state_getMetadata"); err != nil {
		return nil, err
	}
	b, err := unhex(text)
	if err == nil {
		c.meta, err = parseMetadata(b)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", url, err)
	}
	if c.genesis, err = c.hash(ctx, 0); err != nil {
		return nil, err
	}
	var v struct{ SpecVersion, TransactionVersion uint32 }
	if err := c.call(ctx, &v, "state_getRuntimeVersion"); err != nil {
		return nil, err
	}
	c.spec, c.tx = v.SpecVersion, v.TransactionVersion
	return c, nil
}

func (c *Client) call(ctx context.Context, to any, method string, params ...any) error {
	if params == nil {
		params = []any{}
	}
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		var failed *neturl.Error
		if errors.As(err, &failed) {
			err = failed.Err // without what may be secret in the URL
		}
		return fmt.Errorf("the chain's endpoint does not answer: %w", err)
	}
	defer resp.Body.Close()
	var answer struct {
		Result json.RawMessage
		Error  *struct {
			Message string
			Data    any
		}
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, answerMax))
	if err == nil {
		err = json.Unmarshal(text, &answer)
	}
	switch {
	case err != nil:
		return fmt.Errorf("%s is not an endpoint of a Bittensor chain: %s answered %s", c.url, method, resp.Status)
	case answer.Error != nil && c.meta == nil:
		return fmt.Errorf("the endpoint is not of a Bittensor chain: it refuses %s", method)
	case answer.Error != nil && answer.Error.Data != nil:
		return fmt.Errorf("the chain refused %s: %s: %v", method, answer.Error.Message, answer.Error.Data)
	case answer.Error != nil:
		return fmt.Errorf("the chain refused %s: %s", method, answer.Error.Message)
	}
	if err := json.Unmarshal(answer.Result, to); err != nil {
		return fmt.Errorf("the answer of %s to %s: %w", c.url, method, err)
	}
	return nil
}

func unhex(s string) ([]byte, error) { return hex.DecodeString(strings.TrimPrefix(s, "0x")) }

func tohex(b []byte) string { return "0x" + hex.EncodeToString(b) }

// hash returns the hash of a block, or nil if there is no such block yet.
func (c *Client) hash(ctx context.Context, height uint64) ([]byte, error) {
	var text *string
	if err := c.call(ctx, &text, "chain_getBlockHash", height); err != nil || text == nil {
		return nil, err
	}
	return unhex(*text)
}

// Block returns the number and the hash of the chain's newest final block.
func (c *Client) Block(ctx context.Context) (height uint64, hash []byte, err error) {
	var at string
	if err := c.call(ctx, &at, "chain_getFinalizedHead"); err != nil {
		return 0, nil, err
	}
	var header struct{ Number string }
	if err := c.call(ctx, &header, "chain_getHeader", at); err != nil {
		return 0, nil, err
	}
	if height, err = strconv.ParseUint(strings.TrimPrefix(header.Number, "0x"), 16, 64); err == nil {
		hash, err = unhex(at)
	}
	return height, hash, err
}

// get returns what lies at an item of the storage now, or the item's value if nothing lies there.
func (c *Client) get(ctx context.Context, pallet, name string, args ...[]byte) (*reader, error) {
	return c.getAt(ctx, "", pallet, name, args...)
}

// getAt is get after the block of the given hash, the newest one if it is empty.
func (c *Client) getAt(ctx context.Context, block, pallet, name string, args ...[]byte) (*reader, error) {
	key, value, err := c.meta.key(pallet, name, args...)
	if err != nil {
		return nil, err
	}
	params := []any{key}
	if block != "" {
		params = append(params, block)
	}
	var text *string
	if err := c.call(ctx, &text, "state_getStorage", params...); err != nil {
		return nil, err
	}
	if text != nil {
		value, err = unhex(*text)
	}
	return &reader{b: value}, err
}

// nonce returns the number of the account's next transaction.
func (c *Client) nonce(ctx context.Context, a Account) (n uint64, err error) {
	return n, c.call(ctx, &n, "system_accountNextIndex", a.String())
}

// extras returns what a transaction carries besides its call, and what is signed besides. It is
// valid for lifetime blocks from a block on.
func (c *Client) extras(nonce, birth uint64, birthHash []byte) (extra, additional []byte, err error) {
	for _, x := range c.meta.extensions {
		switch x.name {
		case "CheckSpecVersion":
			additional = binary.LittleEndian.AppendUint32(additional, c.spec)
		case "CheckTxVersion":
			additional = binary.LittleEndian.AppendUint32(additional, c.tx)
		case "CheckGenesis":
			additional = append(additional, c.genesis...)
		case "CheckMortality", "CheckEra":
			era := uint16(bits.TrailingZeros(lifetime)-1) | uint16(birth%lifetime)<<4
			extra = binary.LittleEndian.AppendUint16(extra, era)
			additional = append(additional, birthHash...)
		case "CheckNonce":
			extra = appendCompact(extra, nonce)
		case "ChargeTransactionPayment", "ChargeTransactionPaymentWrapper":
			extra = append(extra, 0) // no tip
		case "CheckMetadataHash":
			extra = append(extra, 0) // off
			additional = append(additional, 0)
		default:
			if !c.meta.empty(x.extra, 16) || !c.meta.empty(x.additional, 16) {
				return nil, nil, fmt.Errorf("the chain's transactions carry %s, which this version does not know", x.name)
			}
		}
	}
	return extra, additional, nil
}

// sign makes a transaction: version 4 of the format. See
// https://docs.polkadot.com/reference/parachains/blocks-transactions-fees/transactions.
func (c *Client) sign(k Key, call []byte, nonce, birth uint64, birthHash []byte) ([]byte, error) {
	extra, additional, err := c.extras(nonce, birth, birthHash)
	if err != nil {
		return nil, err
	}
	signed := append(append(append([]byte(nil), call...), extra...), additional...)
	if len(signed) > 256 {
		sum := blake2b.Sum256(signed)
		signed = sum[:]
	}
	sig, err := k.sign(signed)
	if err != nil {
		return nil, err
	}
	from := k.Account()
	tx := []byte{0x84}
	if c.meta.address == "MultiAddress" {
		tx = append(tx, 0)
	}
	tx = append(append(tx, from[:]...), 1) // an sr25519 signature
	tx = append(append(append(tx, sig...), extra...), call...)
	return appendBytes(nil, tx), nil
}

// submit sends a call as the key's account and waits until a block carries it. poll is how often it
// looks for new blocks. If ctx ends before, whether the call is carried out is unknown.
func (c *Client) submit(ctx context.Context, k Key, call []byte, poll time.Duration) error {
	birth, birthHash, err := c.Block(ctx)
	if err != nil {
		return err
	}
	nonce, err := c.nonce(ctx, k.Account())
	if err != nil {
		return err
	}
	tx, err := c.sign(k, call, nonce, birth, birthHash)
	if err != nil {
		return err
	}
	var id string
	if err := c.call(ctx, &id, "author_submitExtrinsic", tohex(tx)); err != nil {
		return err
	}
	tick := time.NewTicker(poll)
	defer tick.Stop()
	idle := 0
	for height := birth + 1; height < birth+lifetime; {
		hash, err := c.hash(ctx, height)
		if err != nil {
			return err
		}
		if hash == nil {
			select {
			case <-ctx.Done():
				return fmt.Errorf("stopped waiting for transaction %s, which may yet be carried out: %w", id, ctx.Err())
			case <-tick.C:
			}
			if idle++; idle == stalled {
				return fmt.Errorf("the chain's endpoint has shown no block after %d for %v; transaction %s may yet be carried out", height-1, stalled*poll, id)
			}
			continue
		}
		idle = 0
		if done, err := c.carried(ctx, hash, tx); done || err != nil {
			return err
		}
		height++
	}
	return fmt.Errorf("no block took transaction %s within %d blocks, so it has expired; try again", id, lifetime)
}

// carried reports whether the block carries the transaction. The error is how the transaction
// ended.
func (c *Client) carried(ctx context.Context, hash, tx []byte) (bool, error) {
	var b struct{ Block struct{ Extrinsics []string } }
	if err := c.call(ctx, &b, "chain_getBlock", tohex(hash)); err != nil {
		return false, err
	}
	want := tohex(tx)
	for i, x := range b.Block.Extrinsics {
		if x != want {
			continue
		}
		key, _, err := c.meta.key("System", "Events")
		if err != nil {
			return true, err
		}
		var text string
		if err := c.call(ctx, &text, "state_getStorage", key, tohex(hash)); err != nil {
			return true, err
		}
		events, err := unhex(text)
		if err != nil {
			return true, err
		}
		return true, c.meta.outcome(events, uint32(i))
	}
	return false, nil
}
