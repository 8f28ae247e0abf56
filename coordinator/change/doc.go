// Package change encodes how a run's state changes in few bytes. At a round's end most members'
// records change in the same way, so the encoding is of differences, field by field over all
// members.
//
// A Picture is what a watcher holds: the state, in all but small runs without the filters of
// witnesses' reports, and without how many witnesses hold each result. Only members that name the
// commitments of others need these. The filters are random bits, 14 for each member and witness, so
// nothing shortens them. In place of the pages that lie within a round's filters, or within its
// counts, a light picture has the hashes of the subtrees over them, and so has the state's hash.
//
// Checks whose round has changed count as if they had been zero, but for the round. What would be
// drawn with the newest round's seed, if there were no others, is taken off them bit by bit, in the
// order of their places: see checks.go.
//
// A change is a list of columns. The state is cut into tables: first the bitmaps of accepted
// results, and the checks, then the others in the order of the buffer: members, reports and so on.
// The column w of a table is the word w of each of its records. Bitmaps are columns of bits,
// filters and what is between the tables of bytes. The hashes of a light picture come last, as
// words.
//
//	column  = U8 mode | content, for words of 4 bytes, bytes or bits
//	mode    = kind + 16 if the values are the new ones, not differences (mod 2^32, 2^8 or 2)
//	kind 0    nothing changes
//	kind 1    U8 count of values | the values | the place of each record's value among them,
//	          in 0, 1, 2, 4 or 8 bits, the first in the least significant ones
//	kind 2    a bitmap of the records whose value is not 0 | their values
//	kind 3    the values of all records
//	kind 4    four columns, of the bytes of the words from the least significant one
//	kind 5    a value for each class of records, in the order of their first records
//	kind 6    the same | a bitmap of the records with another value | their values
//	kind 7    kind 6 with classes that are divided by the values before
//	kind 8    the same, divided by the values before of the words beside it, too
//
// The values of kinds 2, 3, 6, 7 and 8 of single records are written byte by byte: all least
// significant ones first; a bit takes a byte. What encodes a change makes many equal runs of bytes,
// for a general compression to shorten.
//
// Two records are of one class if all columns so far gave them the same values, in all tables with
// their number of records. Members are besides of one class only if their results were accepted in
// the same of the last four rounds, and as many checks of and by them have ended. Columns that
// would make more than 64 classes make none, and if the values before would make more than 1024
// they do not divide.
package change
