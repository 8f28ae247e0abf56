// Package checkpoint reads and writes the file formats of a model and of a participant's state.
//
// It opens no files: it writes to files that the caller's function creates, and reads from an fs.FS
// or an io.Reader. Package atomicfile provides a function that creates a directory atomically.
//
// # Checkpoints
//
// A checkpoint is a directory that transformers, vLLM and llama.cpp's converter read, and a
// manifest:
//
//	config.json              the model's architecture
//	generation_config.json   how to sample from it
//	model.safetensors        the weights; above Options.ShardBytesMax bytes they are spread over
//	                         model-00001-of-0000N.safetensors, and
//	                         model.safetensors.index.json says which tensor is where
//	tokenizer.json           see package tokenizer
//	tokenizer_config.json
//	chat_template.jinja      how conversations are written, if that is known (package
//	                         tokenizer/chat)
//	README.md                the model card
//	adapter_config.json      instead of model.safetensors, in a run of adapters: what PEFT reads.
//	adapter_model.safetensors  config.json is the frozen model's
//	training.json            position in the data, hashes of the members' optimizer states
//	manifest.json            the SHA-256 of every other file; its own SHA-256 is on the ledger
//
// All files are functions of the model and the options, without dates or machine names: all writers
// of a checkpoint produce the same manifest, so they can agree on its hash. The manifest has a
// unique canonical form; see Manifest.Bytes.
//
// A safetensors file is a header and the tensors' elements, little-endian, in the order of the
// tensors' names and without gaps:
//
//	0      8 bytes   n, little-endian: the length of the JSON, a multiple of 8
//	8      n bytes   {"__metadata__":{"format":"pt"},
//	                 "a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}, ... }, padded with spaces
//	8+n              the bytes of the tensors; data_offsets count from here
//
// # States
//
// A participant's state file holds what it must not lose between rounds. All numbers are
// little-endian:
//
//	0      8   "entrain1", the format and its version
//	8     32   the run
//	40     4   epoch
//	44     4   round: the parameters are those at its start
//	48     4   steps that the parameters have seen
//	52     4   zero
//	56     8   p, how many parameters
//	64     8   o, how many numbers of optimizer state
//	72    32   merkle.BlobRoot of the parameters' bytes: the hash the run agrees on
//	104   32   merkle.BlobRoot of the optimizer state's bytes
//	136   32   wire.Sum("entrain/state", bytes 0 to 135)
//	168   4p   parameters, float32
//	      4o   optimizer state, float32
//
// # Optimizer states
//
// Beside the directory of a checkpoint, under its name with OptimizerSuffix, is the optimizer state
// with which its writer resumes from it:
//
//	0      8   "entropt1"
//	8     32   the run
//	40    32   the member's key
//	72     4   steps that the checkpoint's parameters have seen
//	76     4   zero
//	80     8   o, how many numbers of optimizer state
//	88    32   merkle.BlobRoot of the checkpoint's parameters
//	120   32   merkle.BlobRoot of the optimizer state's bytes, as in training.json
//	152   32   wire.Sum("entrain/optimizer", bytes 0 to 151)
//	184   4o   optimizer state, float32
package checkpoint

import (
	"crypto/sha256"
	"fmt"
	"hash"
	"io"
	"math"
	"sort"

	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/tensor"
	"github.com/entrain-network/entrain/tokenizer"
	"github.com/entrain-network/entrain/wire"
)

// The names of the files of a checkpoint.
const (
	ManifestFile   = "manifest.json"
	ConfigFile     = "config.json"
	GenerationFile = "generation_config.json"
	WeightsFile    = "model.safetensors"
	IndexFile      = "model.safetensors.index.json"
	TokenizerFile  = "tokenizer.json"
	CardFile       = "README.md"
	TrainingFile   = "training.json"
	ChatFile       = "chat_template.jinja"

	TokenizerConfigFile = "tokenizer_config.json"
	weightsSuffix       = ".safetensors"
)

// A Model is the contents of a checkpoint.
type Model struct {
	Run       string // the run's name
	Epoch     uint32
	Round     uint32 // Params are those at the start of this round
	Step      uint32 // steps that Params have seen
	Config    Config
	Tokenizer tokenizer.Tokenizer
	Layout    tensor.Layout // of Params
	Params    []float32
	Card      Card
	Training  *Training // how a run resumes from it; nil if unknown
	Chat      string    // the chat template; "" if unknown
}

// Options configure Write.
type Options struct {
	DType         DType // F32, which is the model exactly, or BF16; 0 means F32
	ShardBytesMax uint64
}

// Write writes a checkpoint into files that create makes, in one directory, and returns its
// manifest, which is the last file. Write closes the files before it returns. create has the type
// of atomicfile.Create.
func Write(create func(name string) (io.WriteCloser, error), m Model, o Options) (Manifest, error) {
	if o.DType == 0 {
		o.DType = F32
	}
	if o.ShardBytesMax == 0 {
		o.ShardBytesMax = shardBytes
	}
	if err := m.check(); err != nil {
		return Manifest{}, fmt.Errorf("write checkpoint: %w", err)
	}
	w := writer{create: create}
	params := merkle.BlobRoot(tensor.Bytes(m.Params))
	w.bytes(ConfigFile, m.Config.configBytes(o.DType))
	w.bytes(GenerationFile, m.Config.generationBytes())
	w.bytes(TokenizerFile, m.Tokenizer.JSON())
	w.bytes(TokenizerConfigFile, tokenizer.ConfigJSON(m.Tokenizer, m.Config.Context, m.Config.EOS))
	w.bytes(CardFile, m.card(params, o.DType))
	if m.Chat != "" {
		w.bytes(ChatFile, []byte(m.Chat))
	}
	w.weights(m, o)
	if m.Training != nil {
		t := m.Training.sorted()
		if err := t.Check(); err != nil && w.err == nil {
			w.err = fmt.Errorf("%s: %w", TrainingFile, err)
		}
		w.bytes(TrainingFile, t.Bytes())
	}
	manifest := Manifest{
		Version: Version, Run: m.Run, Epoch: m.Epoch, Round: m.Round, Step: m.Step,
		Params: params, DType: o.DType.String(), Tokenizer: m.Tokenizer.Name(), Files: w.files,
	}
	sort.Slice(manifest.Files, func(i, j int) bool { return manifest.Files[i].File < manifest.Files[j].File })
	if w.err == nil {
		w.err = manifest.Check()
	}
	w.bytes(ManifestFile, manifest.Bytes())
	if w.err != nil {
		return Manifest{}, fmt.Errorf("write checkpoint: %w", w.err)
	}
	return manifest, nil
}

// check returns an error if m cannot be written.
func (m Model) check() error {
	if err := m.Config.Check(); err != nil {
		return err
	}
	if len(m.Params) != m.Layout.Len() {
		return fmt.Errorf("there are %d parameters for a layout of %d", len(m.Params), m.Layout.Len())
	}
	if uint64(m.Tokenizer.Vocab()) > uint64(m.Config.Vocab) {
		return fmt.Errorf("tokenizer %q has %d tokens, the model only %d", m.Tokenizer.Name(), m.Tokenizer.Vocab(), m.Config.Vocab)
	}
	for _, t := range m.Layout.Tensors() {
		for i, v := range t.Of(m.Params) {
			if math.Float32bits(v)>>23&0xff == 0xff {
				return fmt.Errorf("element %d of tensor %q is %v: the model has diverged", i, t.Name, v)
			}
		}
	}
	return nil
}

// writer writes files and remembers their hashes, and the first error.
type writer struct {
	create func(name string) (io.WriteCloser, error)
	files  []File
	err    error
}

// file writes one file, unless there was an error before.
func (w *writer) file(name string, write func(io.Writer) error) {
	if w.err != nil {
		return
	}
	f, err := w.create(name)
	if err != nil {
		w.err = err
		return
	}
	h := hashing{sum: sha256.New()}
	err = write(io.MultiWriter(f, &h))
	if closing := f.Close(); err == nil {
		err = closing
	}
	if err != nil {
		w.err = fmt.Errorf("file %q: %w", name, err)
		return
	}
	w.files = append(w.files, File{File: name, Bytes: h.n, SHA256: h.hash()})
}

func (w *writer) bytes(name string, b []byte) {
	w.file(name, func(f io.Writer) error {
		_, err := f.Write(b)
		return err
	})
}

// weights writes the tensors into one file, or into several and their index.
func (w *writer) weights(m Model, o Options) {
	if m.Config.LoRA != nil {
		w.bytes(AdapterConfigFile, m.Config.LoRA.bytes())
		o.ShardBytesMax = math.MaxUint64
	}
	shards := pack(m.Layout.Tensors(), o)
	name := func(i int) string {
		switch {
		case m.Config.LoRA != nil:
			return AdapterWeightsFile // PEFT knows no shards
		case len(shards) == 1:
			return WeightsFile
		}
		return fmt.Sprintf("model-%05d-of-%05d%s", i+1, len(shards), weightsSuffix)
	}
	where := make(map[string]string)
	for i, tensors := range shards {
		w.file(name(i), func(f io.Writer) error { return writeSafetensors(f, tensors, m.Params, o.DType) })
		for _, t := range tensors {
			where[t.Name] = name(i)
		}
	}
	if len(shards) > 1 {
		w.bytes(IndexFile, indent(index{indexMetadata{uint64(m.Layout.Len()) * o.DType.size()}, where}))
	}
}

// index is model.safetensors.index.json.
type index struct {
	Metadata indexMetadata     `json:"metadata"`
	Where    map[string]string `json:"weight_map"` // file by tensor; written in the order of the names
}

type indexMetadata struct {
	TotalSize uint64 `json:"total_size"` // bytes of the tensors, without headers
}

// pack spreads the tensors, in order, over files of at most o.ShardBytesMax bytes; a larger tensor
// has its own file.
func pack(tensors []tensor.Tensor, o Options) [][]tensor.Tensor {
	shards := make([][]tensor.Tensor, 1)
	var size uint64
	for _, t := range tensors {
		n := uint64(t.Len) * o.DType.size()
		last := len(shards) - 1
		if len(shards[last]) > 0 && size+n > o.ShardBytesMax {
			shards = append(shards, nil)
			last++
			size = 0
		}
		shards[last] = append(shards[last], t)
		size += n
	}
	return shards
}

// hashing counts and hashes what is written to it.
type hashing struct {
	sum hash.Hash
	n   uint64
}

func (h *hashing) Write(p []byte) (int, error) {
	h.n += uint64(len(p))
	return h.sum.Write(p)
}

func (h *hashing) hash() wire.Hash { return wire.Hash(h.sum.Sum(nil)) }
