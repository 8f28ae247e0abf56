// Package bucket exchanges a run's objects through S3 buckets: each member writes to its own and
// reads all others.
//
// A bucket's owner, its provider and anyone on the network path can change its contents at will, so
// nothing in it is trusted. An object's name states its author, its run and window, and its
// content. The member signs the envelope over all of these, and a reader accepts an object only if
// signature, name and content agree. A dishonest owner can only serve nothing or serve it late. The
// chain's time decides what is late, never the store's: no date from a store is read.
//
//   - A [Location] is a bucket's address and read credentials, as a member registers it.
//   - A [Name] identifies an object; its path is its key in the bucket.
//   - A [Store] is a bucket's five operations, over the network or in memory (bucket/mem).
//   - A [Writer] seals and publishes a member's objects; a [Reader] fetches and checks others'.
//   - An [Exchange] does both on a participant's loop and transfers whole models ([Exchange.Blob]).
//
// # Names
//
// The key of an object, below the location's prefix:
//
//	<run>/<window>/<kind>/<member>/<content>
//
// run is the run's ID in 64 lower-case hexadecimal digits, window ten decimal digits, and member
// the author's public key in hexadecimal. kind and content are one of
//
//	commitment  a signed commitment          content: its ID
//	reveal      a slice and its proofs       content: the payload root that its author committed to
//	state       agreed values of a slice     content: hash of the agreed parameters
//	index       roots of a blob's parts      content: root of the blob, merkle.BlobRoot
//	part        64 chunks of a blob, 16 MiB  content: root of their subtree, its merkle.BlobRoot
//	score       a validator's notes          content: hash of the notes, wire.Sum
//	lack        whose results it lacks       content: zero; it may be written again
//	copy        another's signed commitment  content: the commitment's ID
//	            and reveal
//
// The name follows from what the chain records, so a reader can locate an object without listing a
// bucket.
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
