package depot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// action is a request that Git LFS expects for a file.
type action struct {
	Href   string            `json:"href"`
	Header map[string]string `json:"header"`
}

// uploadLarge uploads the large files that the hub's large-file storage lacks.
func (h *hub) uploadLarge(ctx context.Context, u upload, modes map[string]bool) error {
	type object struct {
		OID  string `json:"oid"`
		Size int64  `json:"size"`
	}
	var ask struct {
		Operation string            `json:"operation"`
		Transfers []string          `json:"transfers"`
		Objects   []object          `json:"objects"`
		Algorithm string            `json:"hash_algo"`
		Ref       map[string]string `json:"ref"`
	}
	files := make(map[string]part)
	for _, p := range u.parts() {
		if modes[p.name] {
			oid := p.file.SHA256.String()
			files[oid] = p
			ask.Objects = append(ask.Objects, object{oid, p.size})
		}
	}
	if len(files) == 0 {
		return nil
	}
	ask.Operation, ask.Transfers, ask.Algorithm, ask.Ref = "upload", []string{"basic", "multipart"}, "sha256", map[string]string{"name": h.revision}
	body, err := json.Marshal(ask)
	if err != nil {
		return err
	}
	var reply struct {
		Objects []struct {
			OID     string
			Actions struct{ Upload, Verify *action }
			Error   *struct{ Message string }
		}
	}
	if err := h.api(ctx, http.MethodPost, "/"+h.model+".git/info/lfs/objects/batch", lfsType, body, &reply); err != nil {
		return err
	}
	for _, o := range reply.Objects {
		p, ok := files[o.OID]
		switch {
		case !ok:
			return permanent{fmt.Errorf("the hub requests an unknown large file %.80q", o.OID)}
		case o.Error != nil:
			return permanent{fmt.Errorf("%s: the hub refuses it: %.200q", p.name, o.Error.Message)}
		case o.Actions.Upload == nil:
			continue // already present
		}
		if err := h.large(ctx, u, p, *o.Actions.Upload); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		if v := o.Actions.Verify; v != nil {
			if err := h.follow(ctx, v.Href, object{o.OID, p.size}, h.token); err != nil {
				return fmt.Errorf("%s: %w", p.name, err)
			}
		}
	}
	return nil
}

// piecesMax bounds the pieces of a large file.
const piecesMax = 10_000

// large uploads one file: in one piece, or in several if the answer has a piece size and an address
// for each.
func (h *hub) large(ctx context.Context, u upload, p part, a action) error {
	f, err := u.open(p)
	if err != nil {
		return err
	}
	defer f.Close()
	size, several := a.Header["chunk_size"]
	if !several {
		_, err := h.put(ctx, a.Href, a.Header, f, 0, p.size)
		return err
	}
	chunk, err := strconv.ParseInt(size, 10, 64)
	if err != nil || chunk <= 0 || (p.size-1)/chunk >= piecesMax {
		return permanent{fmt.Errorf("the hub requests pieces of %.20q bytes", size)}
	}
	type piece struct {
		Number int    `json:"partNumber"`
		Tag    string `json:"etag"`
	}
	var done struct {
		OID    string  `json:"oid"`
		Pieces []piece `json:"parts"`
	}
	done.OID = p.file.SHA256.String()
	n := int((p.size-1)/chunk) + 1
	addresses := make([]string, n+1)
	for key, href := range a.Header {
		if i, ok := partNumber(key); ok && i <= n {
			addresses[i] = href
		}
	}
	for i := 1; i <= n; i++ {
		if addresses[i] == "" {
			return permanent{fmt.Errorf("the hub gives no address for piece %d of %d", i, n)}
		}
		from := int64(i-1) * chunk
		tag, err := h.put(ctx, addresses[i], nil, f, from, min(chunk, p.size-from))
		if err != nil {
			return err
		}
		done.Pieces = append(done.Pieces, piece{i, tag})
	}
	return h.follow(ctx, a.Href, done, "")
}

// put sends a piece of a file to an address chosen by the hub. The address belongs to a storage
// service and carries its own authorization. put returns the storage's tag for the piece.
func (h *hub) put(ctx context.Context, address string, header map[string]string, f io.ReaderAt, from, n int64) (tag string, err error) {
	err = h.options.retry(ctx, func() error {
		request, err := http.NewRequestWithContext(ctx, http.MethodPut, address, io.NewSectionReader(f, from, n))
		if err != nil {
			return permanent{errors.New("the hub gives an invalid address for the file")}
		}
		request.ContentLength = n
		for k, v := range header {
			request.Header.Set(k, v)
		}
		response, err := h.options.Client.Do(request)
		if err != nil {
			return withoutQuery(err)
		}
		defer response.Body.Close()
		if response.StatusCode/100 != 2 {
			return statusError("PUT "+request.URL.Path, response)
		}
		tag = response.Header.Get("ETag")
		return nil
	})
	return tag, err
}

// follow sends JSON to an address chosen by the hub, with the token only if the address is on the
// hub itself.
func (h *hub) follow(ctx context.Context, address string, value any, token string) error {
	body, err := json.Marshal(value)
	if err != nil {
		return err
	}
	if !sameHost(address, h.base) {
		token = ""
	}
	return h.options.retry(ctx, func() error {
		return withoutQuery(h.send(ctx, http.MethodPost, address, lfsType, body, token, nil))
	})
}

// sameHost reports whether an address is on the host of a base.
func sameHost(address, base string) bool {
	a, err := url.Parse(address)
	b, err2 := url.Parse(base)
	return err == nil && err2 == nil && a.Scheme == b.Scheme && a.Host == b.Host
}

// withoutQuery removes the query from the address in an error of net/http: signed addresses have
// their secret there.
func withoutQuery(err error) error {
	var e *url.Error
	if errors.As(err, &e) {
		e.URL, _, _ = strings.Cut(e.URL, "?")
	}
	return err
}
