// Package serve is an S3 server over a directory, for demonstrations, tests, and members who have a
// disk but no provider.
//
// It speaks the part of S3 that entrain, minio-go, aws-cli and boto3 use to store objects:
//
//   - PUT, GET, HEAD and DELETE of an object, with ranges, If-Match and If-None-Match;
//   - listings of both versions, with prefix, delimiter and pages, and the removal of many objects;
//   - multipart uploads;
//   - signatures of version 4, in a header or in the address, and bodies that are hashed, unsigned,
//     or signed chunk by chunk (aws-chunked), with checksums in headers or trailers.
//
// Buckets are addressed by path. A request for anything else, such as copies, policies, versions
// or tags, gets NotImplemented. The server keeps no metadata of objects, such as their type.
//
// # Keys
//
// No credentials are stored: all follow from one root secret. A bucket b has the access key "w-b",
// which may do everything in it, and "r-b", which may only read and list. See [Credentials].
//
// # Files
//
//	objects/BUCKET/a/b%     the object "a/b"
//	uploads/BUCKET/ID/      a multipart upload that is not complete: the object's key and the parts
//
// Names of files are the parts of the key between slashes, escaped where a file system would not
// take them; a file's name ends in "%", so that the objects "a" and "a/b" do not collide. Objects
// appear whole and durably (see package atomicfile) before they are acknowledged. The removal of an
// object may be undone by a power cut.
//
// Keys that differ only in case collide on file systems that ignore case.
package serve
