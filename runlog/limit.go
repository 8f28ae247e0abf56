package runlog

// Limits of what a reader believes, checked before anything is allocated.
const (
	// RecordBytesMax bounds a record: a standing of 10,000 members with all that can be said of them takes about 1 MB.
	RecordBytesMax = 4 << 20
	// TextBytesMax bounds a text in a record: errors that quote others may be long, and are cut.
	TextBytesMax = 4 << 10
	// membersMax is coordinator.MembersMax.
	membersMax = 10_000
	// roundsMax bounds the rounds of a standing: the coordinator's ring has four.
	roundsMax = 8
	// witnessesMax is coordinator.WitnessesMax.
	witnessesMax = 32
	// checksMax, disputesMax, convictionsMax and votesMax are the coordinator's tables: a check for one in four members, 16 disputes of
	// three tie-breakers, and the last 64 convictions.
	checksMax      = membersMax / 4
	disputesMax    = 16
	convictionsMax = 64
	votesMax       = 3
	// seatsMax bounds the validators of a run.
	seatsMax = 64
)

// Defaults of [Options].
const (
	// SegmentBytes is when a file is full: small enough to be removed as a whole when the log is too large.
	SegmentBytes = 16 << 20
	// TotalBytes bounds the log: some weeks of a run of a hundred members.
	TotalBytes = 512 << 20
	// QueueRecords bounds what waits to be written: many seconds' worth, some megabytes.
	QueueRecords = 4096
)
