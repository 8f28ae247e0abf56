// Package trace is a member's share of one round as an explicit program: a list of operations, each of which makes one value, a value cut in tiles,
// a tile made in slices. Every slice can be computed again alone, from a few kilobytes, so that a referee who saw nothing of the computation decides
// who of two parties that differ about it is wrong.
package trace
