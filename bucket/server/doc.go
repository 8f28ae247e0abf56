// Package server is an S3 server in a process of its own, for demonstrations, tests, and members who have a disk but no provider.
//
// It is versitygw (https://github.com/versity/versitygw), which keeps objects as files below a directory. The gateway takes over the working
// directory of its process and cannot run twice in one, so [Start] starts a process for it: the same program again, which calls [Child] before
// anything else. It ends with its parent.
//
// Accounts are derived, not kept: whoever knows the root secret knows all. For every bucket b there is an account that may write to it, "w-b", and one
// that may read it, "r-b", whose credentials can be published (see [Credentials]).
package server
