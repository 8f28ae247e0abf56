package change

const (
	classesMax = 64   // that records are divided into by what columns gave them
	dividedMax = 1024 // and then by the values that a column has before
)

// classes are the classes of records, by the number of records in their tables.
type classes map[int]division

// division is the class of each record, and how many classes there are.
type division struct {
	of    []uint16
	count int
}

// divide divides each class by what a column gives its records.
func (c classes) divide(values []uint32) {
	c[len(values)] = c.among(len(values)).by(values, classesMax)
}

// among returns the division of the tables with that number of records.
func (c classes) among(records int) division {
	if d, known := c[records]; known {
		return d
	}
	return division{of: make([]uint16, records), count: 1}
}

// by returns the division by the values, d itself if that had more than most classes.
func (d division) by(values []uint32, most int) division {
	type part struct {
		class uint16
		value uint32
	}
	next := make([]uint16, len(values))
	number := map[part]uint16{}
	for i, v := range values {
		p := part{d.of[i], v}
		if i > 0 && p == (part{d.of[i-1], values[i-1]}) {
			next[i] = next[i-1]
			continue
		}
		k, known := number[p]
		if !known {
			if len(number) == most {
				return d
			}
			k = uint16(len(number))
			number[p] = k
		}
		next[i] = k
	}
	return division{next, len(number)}
}

// usual returns the commonest value of each class, roughly, and how many records have another one.
func (d division) usual(values []uint32) (usual []uint32, others int) {
	usual = make([]uint32, d.count)
	votes := make([]int, d.count)
	for i, v := range values { // the majority, if there is one
		switch k := d.of[i]; {
		case votes[k] == 0:
			usual[k], votes[k] = v, 1
		case usual[k] == v:
			votes[k]++
		default:
			votes[k]--
		}
	}
	for i, v := range values {
		if v != usual[d.of[i]] {
			others++
		}
	}
	return usual, others
}
