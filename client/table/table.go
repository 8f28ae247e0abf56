// Package table keeps lists by index: few in a map, or many in a table, where they are found
// sooner.
package table

import "slices"

// Table has a list for each index below a number. Its zero value has none.
type Table[I ~uint32, V any] struct {
	few  map[I][]V
	many [][]V // nil: few has them
}

// Lists move from the map to the table once there are at least manyMin of them, and one for each
// manyPart indexes or fewer.
const manyMin, manyPart = 64, 16

// Of returns the list of an index, nil if it has none.
func (t *Table[I, V]) Of(i I) []V {
	if t.many == nil {
		return t.few[i]
	}
	if int(i) >= len(t.many) {
		return nil
	}
	return t.many[i]
}

// Set replaces the list of an index. Nearly all indexes are below n.
func (t *Table[I, V]) Set(i I, list []V, n I) {
	if t.many != nil {
		t.put(i, list)
		return
	}
	if t.few == nil {
		t.few = map[I][]V{}
	}
	t.few[i] = list
	if len(t.few) < max(manyMin, int(n)/manyPart) {
		return
	}
	t.many = make([][]V, n)
	for i, list := range t.few {
		t.put(i, list)
	}
	t.few = nil
}

func (t *Table[I, V]) put(i I, list []V) {
	if more := int(i) + 1 - len(t.many); more > 0 {
		t.many = append(t.many, make([][]V, more)...)
	}
	t.many[i] = list
}

// Each calls f for all lists, in any order; some may be empty.
func (t *Table[I, V]) Each(f func([]V)) {
	for _, list := range t.few {
		f(list)
	}
	for _, list := range t.many {
		f(list)
	}
}

// Distinct removes the later ones of equal values, of which there are few.
func Distinct[V comparable](values []V) (list []V) {
	for _, v := range values {
		if !slices.Contains(list, v) {
			list = append(list, v)
		}
	}
	return list
}

// Most returns what most have of what each of a list has, and how many do.
func Most[T any, V comparable](list []T, of func(T) V) (most V, votes int) {
	for i := 0; votes < len(list)-i; i++ { // the rest could outvote it
		same := 0
		for _, o := range list[i:] {
			if of(o) == of(list[i]) {
				same++
			}
		}
		if same > votes {
			most, votes = of(list[i]), same
		}
	}
	return most, votes
}
