package runlog

// Limits of what a reader accepts, checked before it allocates anything.
const (
	// RecordBytesMax bounds a record. A whole standing of 10,000 members takes about 1.5 MB.
	RecordBytesMax = 4 << 20
	// TextBytesMax bounds a text in a record. Longer texts, such as errors that quote others, are cut.
	TextBytesMax = 4 << 10
	// membersMax is coordinator.MembersMax.
	membersMax = 10_000
	// roundsMax bounds the rounds of a standing. The coordinator keeps four.
	roundsMax = 8
	// witnessesMax is coordinator.WitnessesMax.
	witnessesMax = 32
	// checksMax, disputesMax, convictionsMax and votesMax are the sizes of the coordinator's tables: a
	// check for one in four members, 16 disputes with three tie-breakers each, and 64 convictions.
	checksMax      = membersMax / 4
	disputesMax    = 16
	convictionsMax = 64
	votesMax       = 3
	// seatsMax bounds the validators of a run.
	seatsMax = 64
)

// Defaults of [Options].
const (
	// SegmentBytes is the size at which a file is full. Files are removed whole, so they are small.
	SegmentBytes = 16 << 20
	// TotalBytes bounds the log. It holds some weeks of a run of a hundred members.
	TotalBytes = 512 << 20
	// QueueRecords bounds the records that wait to be written: those of many seconds, some megabytes.
	QueueRecords = 4096
)
