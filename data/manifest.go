package data

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/entrain-network/entrain/canonical"
	"github.com/entrain-network/entrain/data/order"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/tokenizer"
	"github.com/entrain-network/entrain/wire"
)

// manifestFile is the name of the manifest in the directory of a data set.
const manifestFile = "manifest.json"

// Version is the version of the format.
const Version = 1

// A Manifest describes the contents of a data set. The SHA-256 of its canonical bytes identifies
// the data set down to the last bit.
type Manifest struct {
	Version       int       `json:"version"`
	Name          string    `json:"name"` // lower-case letters, digits, '-', '_' and '.'
	Tokenizer     Tokenizer `json:"tokenizer"`
	Vocab         uint32    `json:"vocab"`           // every token is below it
	TokenBytes    int       `json:"token_bytes"`     // 2 or 4
	ShardTokens   uint64    `json:"shard_tokens"`    // tokens in every shard but the last of each part
	Tokens        uint64    `json:"tokens"`          // in Shards
	HeldOutTokens uint64    `json:"held_out_tokens"` // in HeldOut
	Shards        []Shard   `json:"shards"`          // what is trained on
	HeldOut       []Shard   `json:"held_out"`        // what is only evaluated on
	Chat          string    `json:"chat,omitempty"`  // the model's chat template; "" if unknown
	// Masked says that the highest bit of a token on disk is the bit Masked: the token is read, and
	// not learnt.
	Masked bool `json:"masked,omitempty"`

	mix []byte // canonical bytes of a mix, which has no shards of its own
}

// Tokenizer identifies the tokenizer that made the tokens (package tokenizer).
type Tokenizer struct {
	Name string    `json:"name"`
	Hash wire.Hash `json:"hash"`
}

// A Shard is one file of tokens.
type Shard struct {
	File   string    `json:"file"` // a plain name in the data set's directory
	Tokens uint64    `json:"tokens"`
	Bytes  uint64    `json:"bytes"` // Tokens * TokenBytes
	Root   wire.Hash `json:"root"`  // merkle.BlobRoot of the file
}

// files returns the names of the files that a set may have, the manifest last.
func (m Manifest) files() []string {
	var names []string
	for _, s := range append(append([]Shard{}, m.Shards...), m.HeldOut...) {
		names = append(names, s.File)
	}
	return append(names, leavesFile, tokenizerFile, manifestFile)
}

// Bytes returns the canonical bytes of m, or of the mix that m summarizes: JSON indented by two
// spaces, the fields in the order of the struct, and a newline.
func (m Manifest) Bytes() []byte {
	if m.mix != nil {
		return m.mix
	}
	if m.Shards == nil {
		m.Shards = []Shard{}
	}
	if m.HeldOut == nil {
		m.HeldOut = []Shard{}
	}
	return canonical.JSON(m)
}

// Hash returns the SHA-256 of Bytes, which `sha256sum manifest.json` prints.
func (m Manifest) Hash() wire.Hash { return wire.SHA256(m.Bytes()) }

// ParseManifest reads canonical bytes. It refuses everything else, so that a data set has only one
// hash: unknown or repeated fields, other spacing, and every manifest that Check refuses.
func ParseManifest(b []byte) (Manifest, error) {
	return canonical.Parse[Manifest](b, "manifest of a data set", manifestBytesMax)
}

// Check returns what is wrong with m, or nil.
func (m Manifest) Check() error {
	switch {
	case m.Version != Version:
		return fmt.Errorf("unknown version %d, want %d", m.Version, Version)
	case !plainName(m.Name):
		return fmt.Errorf("name %q is not made of 1 to %d lower-case letters, digits, '-', '_' and '.'", m.Name, nameBytesMax)
	case !plainName(m.Tokenizer.Name):
		return fmt.Errorf("tokenizer name %q is not made of lower-case letters, digits, '-', '_' and '.'", m.Tokenizer.Name)
	case m.Vocab == 0 || m.Vocab > tokenizer.VocabMax:
		return fmt.Errorf("vocab %d is not in 1..%d", m.Vocab, tokenizer.VocabMax)
	case m.TokenBytes != 2 && m.TokenBytes != 4:
		return fmt.Errorf("token_bytes is %d, not 2 or 4", m.TokenBytes)
	case m.TokenBytes == 2 && m.Vocab > m.vocabMax2():
		return fmt.Errorf("a vocabulary of %d does not fit tokens of 2 bytes", m.Vocab)
	case m.ShardTokens < ShardTokensMin || m.ShardTokens > shardTokensMax:
		return fmt.Errorf("shard_tokens %d is not in %d..%d", m.ShardTokens, ShardTokensMin, shardTokensMax)
	case len(m.Shards)+len(m.HeldOut) > shardsMax:
		return fmt.Errorf("it lists %d shards, more than %d", len(m.Shards)+len(m.HeldOut), shardsMax)
	}
	if len(m.Chat) > chatBytesMax || !utf8.ValidString(m.Chat) {
		return fmt.Errorf("chat is not UTF-8 of at most %d bytes", chatBytesMax)
	}
	files := make(map[string]bool)
	if err := m.checkPart("shards", m.Shards, m.Tokens, files); err != nil {
		return err
	}
	return m.checkPart("held_out", m.HeldOut, m.HeldOutTokens, files)
}

// checkPart checks the shards of one part, which together must hold the given number of tokens, and
// adds their names to files.
func (m Manifest) checkPart(part string, shards []Shard, tokens uint64, files map[string]bool) error {
	var sum uint64
	for i, s := range shards {
		switch {
		case !plainName(s.File) || s.File == manifestFile || s.File == tokenizerFile || s.File == leavesFile:
			return fmt.Errorf("%s[%d]: %q is not a plain file name", part, i, s.File)
		case files[s.File]:
			return fmt.Errorf("%s[%d]: file %q is listed twice", part, i, s.File)
		case s.Tokens == 0 || s.Tokens > m.ShardTokens || i < len(shards)-1 && s.Tokens != m.ShardTokens:
			return fmt.Errorf("%s[%d]: %q has %d tokens; all but the last have %d", part, i, s.File, s.Tokens, m.ShardTokens)
		case s.Bytes != s.Tokens*uint64(m.TokenBytes):
			return fmt.Errorf("%s[%d]: %q has %d bytes for %d tokens of %d bytes", part, i, s.File, s.Bytes, s.Tokens, m.TokenBytes)
		}
		files[s.File] = true
		sum += s.Tokens
	}
	if sum != tokens {
		return fmt.Errorf("%s hold %d tokens, not %d", part, sum, tokens)
	}
	return nil
}

// plainName reports whether s is a short name that means the same on every file system and in every
// terminal.
func plainName(s string) bool {
	if s == "" || len(s) > nameBytesMax || s[0] == '.' || s[0] == '-' {
		return false
	}
	return strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-_.") == ""
}

// absentError says that there is no data set at a path. It is fs.ErrNotExist.
type absentError string

func (e absentError) Error() string      { return string(e) }
func (absentError) Is(target error) bool { return target == fs.ErrNotExist }

// notDataSet says what dir is if its manifest cannot be opened because of err.
func notDataSet(dir string, err error) error {
	info, missing := os.Stat(dir)
	switch {
	case missing == nil && !info.IsDir():
		return fmt.Errorf("%q is a file, not a data set: make one from it with: entrain data prepare -o DIR %q", dir, dir)
	case missing == nil && errors.Is(err, fs.ErrNotExist):
		return absentError(fmt.Sprintf("%q is not a data set: it holds no %s", dir, manifestFile))
	case errors.Is(missing, fs.ErrNotExist):
		return absentError(fmt.Sprintf("there is no data set %q", dir))
	}
	return fmt.Errorf("read manifest: %w", err)
}

// ReadManifest reads the manifest of the data set in dir, or the summary of the mix there.
func ReadManifest(dir string) (Manifest, error) {
	path := filepath.Join(dir, manifestFile)
	f, err := os.Open(path)
	if err != nil {
		return Manifest{}, notDataSet(dir, err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, manifestBytesMax+1))
	if err != nil {
		return Manifest{}, fmt.Errorf("read manifest: %w", err)
	}
	if isMix(b) {
		return readMix(dir, b)
	}
	m, err := ParseManifest(b)
	if err != nil {
		return Manifest{}, fmt.Errorf("%q: %w", path, err)
	}
	return m, nil
}

// vocabMax2 returns the largest vocabulary for tokens of 2 bytes.
func (m Manifest) vocabMax2() uint32 {
	if m.Masked {
		return (math.MaxUint16 + 1) / 2
	}
	return math.MaxUint16 + 1
}

// decode sets dst to tokens on disk. It returns the index of the first that is beyond the
// vocabulary, or -1.
func (m Manifest) decode(dst []uint32, b []byte) (bad int) {
	return order.Text{Vocab: m.Vocab, TokenBytes: m.TokenBytes, Masked: m.Masked}.Decode(dst, b)
}

// chunks returns the number of chunks in the file.
func (s Shard) chunks() uint64 { return merkle.BlobChunks(s.Bytes) }
