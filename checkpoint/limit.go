package checkpoint

// Limits of files from outside, checked before memory is spent.
const (
	headerBytesMax   = 100_000_000 // of a safetensors header: the limit of Hugging Face's own reader
	ManifestBytesMax = 1 << 20     // of manifest.json; a file takes about 150 bytes
	trainingBytesMax = 4 << 20     // of training.json: statesMax states of about 200 bytes
	statesMax        = 10_000      // members of the largest run
	ConfigBytesMax   = 1 << 20     // of config.json; real ones have about 1 KB
	IndexBytesMax    = 16 << 20    // of model.safetensors.index.json: tensor.MaxTensors lines
	ChatBytesMax     = 1 << 20     // of chat_template.jinja; real ones have up to 20 KB
	filesMax         = 4096        // in a checkpoint: 5 GB each make 20 TB
	RunBytesMax      = 64          // of a run's name
	// of the numbers in config.json; vocabularies are the largest of them
	dimensionMax = 1 << 24
)

// shardBytes is the size above which the weights are spread over several files, the long-time
// default of transformers. It bounds the cost of one upload or one retried download.
const shardBytes = 5_000_000_000

// pieceBytes is the amount converted, hashed, read or written at once.
const pieceBytes = 1 << 20
