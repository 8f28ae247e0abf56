package serve

import (
	"bufio"
	"bytes"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"hash"
	"hash/crc32"
	"hash/crc64"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/entrain-network/entrain/bucket/sigv4"
)

// How a body is signed, as X-Amz-Content-Sha256 names it beside UNSIGNED-PAYLOAD and a hash.
const (
	chunksSigned           = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"
	chunksSignedTrailer    = chunksSigned + "-TRAILER"
	chunksUnsignedTrailer  = "STREAMING-UNSIGNED-PAYLOAD-TRAILER"
	chunkKind, trailerKind = "AWS4-HMAC-SHA256-PAYLOAD", "AWS4-HMAC-SHA256-TRAILER"
)

// Limits of bodies.
const (
	objectBytesMax = 5 << 30 // of one PUT, as Amazon has it
	lineBytesMax   = 4096    // of a chunk's header, or of a trailer
	trailersMax    = 8
)

// checksums are the algorithms of X-Amz-Checksum-*.
var checksums = map[string]func() hash.Hash{
	"crc32":     func() hash.Hash { return crc32.NewIEEE() },
	"crc32c":    func() hash.Hash { return crc32.New(crc32.MakeTable(crc32.Castagnoli)) },
	"crc64nvme": func() hash.Hash { return crc64.New(crc64.MakeTable(0x9a6c9329ac4bc9b5)) },
	"sha1":      sha1.New,
	"sha256":    sha256.New,
}

const checksumPrefix = "x-amz-checksum-"

// claim is a digest that a body is claimed to have.
type claim struct {
	hash hash.Hash
	want func() (string, error) // in base64
}

// payload is the body of a request, freed of its coding and checked: at the end, Read returns
// io.EOF only if the length, all signatures and all digests are right.
type payload struct {
	r      io.Reader // of the decoded bytes
	left   int64     // bytes still to come
	claims []claim
	err    error // what Read returns from now on
}

// newPayload returns the body of a request whose signature has been checked.
func newPayload(r *http.Request, g *signature) (*payload, error) {
	p := &payload{r: r.Body, left: r.ContentLength}
	names := r.Header.Values("X-Amz-Trailer")
	switch g.body {
	case unsignedBody:
	case chunksSigned, chunksSignedTrailer, chunksUnsignedTrailer:
		n, err := strconv.ParseInt(r.Header.Get("X-Amz-Decoded-Content-Length"), 10, 64)
		if err != nil {
			return nil, errNoLength
		}
		c := &chunks{r: bufio.NewReaderSize(r.Body, 64<<10), signature: g, trailers: map[string]string{}}
		if p.r, p.left, c.signed = c, n, g.body != chunksUnsignedTrailer; c.signed {
			c.previous, c.hash = g.value, sha256.New()
		}
		for _, name := range names {
			if err := p.claim(strings.ToLower(name), func() (string, error) { return c.trailer(name) }); err != nil {
				return nil, err
			}
		}
	default:
		want, err := hex.DecodeString(g.body)
		if err != nil || len(want) != sha256.Size {
			return nil, errNoBodyHash
		}
		p.claims = append(p.claims, claim{sha256.New(), constant(base64.StdEncoding.EncodeToString(want))})
	}
	if p.left < 0 {
		return nil, errNoLength
	}
	if p.left > objectBytesMax {
		return nil, errTooLarge
	}
	if v := r.Header.Get("Content-Md5"); v != "" {
		p.claims = append(p.claims, claim{md5.New(), constant(v)})
	}
	for name, values := range r.Header {
		if name = strings.ToLower(name); r.Method == http.MethodPost && r.URL.Query().Has("uploadId") {
			break // they are about the object to be completed
		}
		if strings.HasPrefix(name, checksumPrefix) && !slices.Contains(notDigests, name[len(checksumPrefix):]) {
			if err := p.claim(name, constant(values[0])); err != nil {
				return nil, err
			}
		}
	}
	return p, nil
}

// notDigests are headers named like a checksum that hold none.
var notDigests = []string{"algorithm", "type", "mode"}

func constant(v string) func() (string, error) {
	return func() (string, error) { return v, nil }
}

// claim adds the digest of a header or trailer.
func (p *payload) claim(name string, want func() (string, error)) error {
	algorithm, ok := strings.CutPrefix(name, checksumPrefix)
	if !ok || checksums[algorithm] == nil {
		return errBadChecksum
	}
	p.claims = append(p.claims, claim{checksums[algorithm](), want})
	return nil
}

// Read reads decoded bytes.
func (p *payload) Read(b []byte) (int, error) {
	if p.err != nil {
		return 0, p.err
	}
	n, err := p.r.Read(b)
	for _, c := range p.claims {
		c.hash.Write(b[:n])
	}
	switch p.left -= int64(n); {
	case p.left < 0:
		p.err = errWrongLength
	case err == io.EOF:
		p.err = p.end()
	default:
		p.err = err
	}
	return n, p.err
}

// end returns io.EOF if all is right.
func (p *payload) end() error {
	if p.left > 0 {
		return errWrongLength
	}
	for _, c := range p.claims {
		want, err := c.want()
		if err != nil {
			return err
		}
		if base64.StdEncoding.EncodeToString(c.hash.Sum(nil)) != want {
			return errWrongDigest
		}
	}
	return io.EOF
}

// chunks decodes aws-chunked, in which each chunk, and the trailers, may be signed.
type chunks struct {
	r         *bufio.Reader
	signature *signature
	signed    bool
	previous  string    // the signature of the chunk before
	hash      hash.Hash // of the chunk being read
	current   string    // its signature
	left      int64     // bytes left of it
	inside    bool      // a chunk, whose end is still to be checked
	ended     bool
	trailers  map[string]string
}

// Read reads bytes of chunks, whose signatures are checked at the end of each.
func (c *chunks) Read(b []byte) (int, error) {
	for c.left == 0 {
		if c.ended {
			return 0, io.EOF
		}
		if err := c.next(); err != nil {
			return 0, err
		}
	}
	n, err := c.r.Read(b[:min(int64(len(b)), c.left)])
	if c.signed {
		c.hash.Write(b[:n])
	}
	if c.left -= int64(n); err == io.EOF {
		err = errBadChunk
	}
	return n, err
}

// next ends the chunk that was read and begins another, or reads what follows the last.
func (c *chunks) next() error {
	if c.inside {
		if line, err := c.line(); err != nil || len(line) > 0 {
			return errBadChunk
		}
		if err := c.check(); err != nil {
			return err
		}
	}
	line, err := c.line()
	if err != nil {
		return errBadChunk
	}
	size, extension, _ := strings.Cut(string(line), ";")
	n, err := strconv.ParseUint(size, 16, 40)
	if err != nil {
		return errBadChunk
	}
	c.left, c.inside = int64(n), true
	if c.signed {
		var ok bool
		if c.current, ok = strings.CutPrefix(extension, "chunk-signature="); !ok {
			return errBadChunk
		}
		c.hash.Reset()
	}
	if n > 0 {
		return nil
	}
	c.ended = true
	if err := c.check(); err != nil {
		return err
	}
	return c.readTrailers()
}

// check checks the signature of the chunk that was read.
func (c *chunks) check() error {
	if !c.signed {
		return nil
	}
	sum := hex.EncodeToString(c.hash.Sum(nil))
	if !c.signature.signs(c.current, chunkKind, c.previous, emptyHash, sum) {
		return errWrongSignature
	}
	c.previous = c.current
	return nil
}

// readTrailers reads the lines after the last chunk. Clients end them differently.
func (c *chunks) readTrailers() error {
	var text bytes.Buffer
	signed := ""
	for range 2 * trailersMax {
		line, err := c.line()
		if err == io.EOF && len(line) == 0 {
			if c.signature.body == chunksSignedTrailer &&
				!c.signature.signs(signed, trailerKind, c.previous, sigv4.Hash(text.Bytes())) {
				return errWrongSignature
			}
			return nil
		}
		name, value, ok := strings.Cut(string(line), ":")
		switch name = strings.ToLower(name); {
		case len(line) == 0:
		case err != nil || !ok:
			return errBadChunk
		case name == "x-amz-trailer-signature":
			signed = value
		default:
			c.trailers[name] = strings.TrimSpace(value)
			text.WriteString(name + ":" + value + "\n")
		}
	}
	return errBadChunk
}

// trailer returns the value of a trailer that was announced.
func (c *chunks) trailer(name string) (string, error) {
	if v, ok := c.trailers[strings.ToLower(name)]; ok {
		return v, nil
	}
	return "", errBadChunk
}

// line reads a line and returns it without its end. It is valid until the next read.
func (c *chunks) line() ([]byte, error) {
	line, err := c.r.ReadSlice('\n')
	if err == nil && len(line) > lineBytesMax {
		err = errBadChunk
	}
	return bytes.TrimRight(line, "\r\n"), err
}
