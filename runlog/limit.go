package runlog

// Limits of what a reader accepts, checked before it allocates anything.
const (
	// recordBytesMax bounds a record. A whole standing of 10,000 members takes about 1.5 MB.
	recordBytesMax = 4 << 20
	// textBytesMax bounds a text in a record. Longer texts, such as errors that quote others, are cut.
	textBytesMax = 4 << 10
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
	// segmentBytes is the size at which a file is full. Files are removed whole, so they are small.
	segmentBytes = 16 << 20
	// totalBytes bounds the log. It holds some weeks of a run of a hundred members.
	totalBytes = 512 << 20
	// queueRecords bounds the records that wait to be written: those of many seconds, some megabytes.
	queueRecords = 4096
)
