// Package runlog is the record of what happened in a run, as one participant saw it: the events of package node, and the
// coordinator's state in short whenever it changed.
package runlog
