// Package bucket exchanges a run's objects through S3 buckets: everybody writes to its own, everybody reads all.
//
// A bucket is a place that its owner, its provider and whoever sits on the way may change at will, so nothing in it is believed. An object's
// name says whose it is, of which run and window, and what must be in it; its envelope is signed by the member over all of that; and a
// reader takes it only if signature, name and content agree. What remains to a liar is to serve nothing, or to serve it late, and what is late
// is decided by the chain's time, never by the store's: no date that a store tells is read.
//
//   - A [Location] is where a bucket is, with the credentials to read it, as a member registers it on the chain.
//   - A [Name] is what an object is; its path is its key in the bucket.
//   - A [Store] is a bucket as five operations; [NewS3] is one over the network, package bucket/mem one in memory.
//   - A [Writer] seals what a member publishes and keeps its bucket tidy; a [Reader] gets and checks what others publish.
//   - An [Exchange] does both on a participant's loop, in simulations too, and carries whole models (see [Exchange.Blob]).
//
// # Names
//
// The key of an object, below the location's prefix:
//
//	<run>/<window>/<kind>/<member>/<content>
//
// run is the run's ID in 64 lower-case hexadecimal digits, window ten decimal digits, member the public key of the author in hexadecimal, kind
// and content one of
//
//	commitment  a signed commitment          content: its ID
//	reveal      a slice and its proofs       content: the payload root that its author had committed to
//	state       agreed values of a slice     content: hash of the agreed parameters
//	index       roots of a blob's parts      content: root of the blob, merkle.BlobRoot
//	part        64 chunks of a blob, 16 MiB  content: root of the subtree over them, which is its own merkle.BlobRoot
//	score       a validator's notes          content: hash of the notes, wire.Sum
//
// so that whoever knows from the chain what it wants knows where it is; nothing has to be listed.
//
// # Envelope
//
//	"entrain object 1"  16 bytes
//	run                 32
//	window              U32
//	kind                U8
//	member              32
//	content             32
//	length              U64   of the body
//	digest              32    wire.Sum("entrain/object", body)
//	signature           64    by member, domain "entrain/object", over all of the above
//	body                length bytes, and nothing after it
package bucket
