package solana

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/entrain-network/entrain/chain/solana"
)

// Bounds of one call of an endpoint.
const (
	answerWait     = 15 * time.Second
	answerBytesMax = 64 << 20 // the largest run has 5 MB, and base 64 makes it a third longer
)

// endpointError is the failure of an endpoint, which another one may not share.
type endpointError struct {
	at  string
	err error
}

func (e *endpointError) Error() string { return e.at + ": " + e.err.Error() }
func (e *endpointError) Unwrap() error { return e.err }

// rpcError is an error that an endpoint answers with.
type rpcError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

func (e *rpcError) Error() string { return fmt.Sprintf("%s (code %d)", e.Message, e.Code) }

// call asks the current endpoint. If that fails the next call asks another one.
func (c *Client) call(ctx context.Context, answer any, method string, params ...any) error {
	n := c.current.Load()
	at := c.endpoints[n%uint64(len(c.endpoints))]
	err := c.ask(ctx, at, answer, method, params)
	if err != nil {
		c.current.CompareAndSwap(n, n+1)
		return &endpointError{plain(at), fmt.Errorf("%s: %w", method, err)}
	}
	return nil
}

// plain returns an endpoint without what may be secret in it: providers put keys into paths and
// queries.
func plain(endpoint string) string {
	u, err := url.Parse(endpoint)
	if err != nil {
		return "an endpoint"
	}
	return u.Scheme + "://" + u.Host
}

func (c *Client) ask(ctx context.Context, at string, answer any, method string, params []any) error {
	ctx, cancel := context.WithTimeout(ctx, answerWait)
	defer cancel()
	if params == nil {
		params = []any{}
	}
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, at, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := c.http.Do(req)
	if err != nil {
		var u *url.Error
		if errors.As(err, &u) {
			err = u.Err // without the endpoint's path
		}
		return err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, answerBytesMax))
	if err != nil {
		return err
	}
	var r struct {
		Result json.RawMessage `json:"result"`
		Error  *rpcError       `json:"error"`
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return fmt.Errorf("it answers with status %d and no JSON-RPC", res.StatusCode)
	}
	if r.Error != nil {
		return r.Error
	}
	return json.Unmarshal(r.Result, answer)
}

// account is an account, or a part of one.
type account struct {
	Lamports   uint64
	Owner      solana.Address
	Executable bool
	Data       []byte
}

// UnmarshalJSON reads what getMultipleAccounts and getProgramAccounts return.
func (a *account) UnmarshalJSON(text []byte) error {
	var v struct {
		Lamports   uint64   `json:"lamports"`
		Owner      string   `json:"owner"`
		Executable bool     `json:"executable"`
		Data       []string `json:"data"`
	}
	if err := json.Unmarshal(text, &v); err != nil {
		return err
	}
	if len(v.Data) != 2 || v.Data[1] != "base64" {
		return errors.New("an account's data are not in base 64")
	}
	var err error
	if a.Owner, err = solana.ParseAddress(v.Owner); err != nil {
		return err
	}
	a.Lamports, a.Executable = v.Lamports, v.Executable
	a.Data, err = base64.StdEncoding.DecodeString(v.Data[0])
	return err
}

// commitment says how settled a block must be that the client believes: two thirds of the stake
// have voted for it. None was ever undone.
const commitment = "confirmed"

// part is a part of accounts' data.
type part struct {
	Offset uint64 `json:"offset"`
	Length uint64 `json:"length"`
}

// accounts reads accounts as of one slot. Those that do not exist are nil. of bounds what is read,
// unless it is nil.
func (c *Client) accounts(ctx context.Context, of *part, at ...solana.Address) (slot uint64, list []*account, err error) {
	options := map[string]any{"encoding": "base64", "commitment": commitment}
	if of != nil {
		options["dataSlice"] = of
	}
	var r struct {
		Context struct {
			Slot uint64 `json:"slot"`
		} `json:"context"`
		Value []*account `json:"value"`
	}
	if err := c.call(ctx, &r, "getMultipleAccounts", at, options); err != nil {
		return 0, nil, err
	}
	if len(r.Value) != len(at) {
		return 0, nil, fmt.Errorf("%d accounts in an answer about %d", len(r.Value), len(at))
	}
	return r.Context.Slot, r.Value, nil
}

// buffers returns the contents of all buffers of the program that begin with these 32 bytes, by
// author. An author's last one counts.
func (c *Client) buffers(ctx context.Context, first solana.Address) (map[solana.Address][]byte, error) {
	const content = 4 + 32
	var r []struct {
		Account account `json:"account"`
	}
	err := c.call(ctx, &r, "getProgramAccounts", solana.Address(c.program), map[string]any{
		"encoding": "base64", "commitment": commitment,
		"filters": []any{map[string]any{"memcmp": map[string]any{"offset": content, "bytes": first}}},
	})
	if err != nil {
		return nil, err
	}
	found := make(map[solana.Address][]byte)
	for _, v := range r {
		if author, b, ok := solana.Buffered(v.Account.Data); ok && v.Account.Owner == solana.Address(c.program) && bytes.HasPrefix(b, first[:]) {
			found[author] = b[len(first):]
		}
	}
	return found, nil
}
