package exact

// Progress holds what a worker has computed of a piece of work that takes more time than there is
// at once. The work is done again from its beginning each time, without what is in Progress.
type Progress struct {
	Words   []float32 // results, in the order in which they are computed
	Used    int       // elements of Words that are set
	Left    int       // results that may still be computed now
	Stopped bool      // something was not computed, so the work's result means nothing
	at      int       // elements of Words that this time has passed
}

// Resume lets the worker compute with p, from its beginning; nil is none.
func (w *Worker) Resume(p *Progress) {
	if w.log = p; p != nil {
		p.at, p.Stopped = 0, false
	}
}

// Rows calls f for the rows [from, to) of out, of which there are n: once for all or, with
// Progress, for those that it lacks, each rows at a time. f sets these rows of out and nothing
// else.
func (w *Worker) Rows(out []float32, n, each int, f func(from, to int)) {
	if w.log == nil {
		f(0, n)
		return
	}
	width := len(out) / max(n, 1)
	for from := 0; from < n; from += each {
		to := min(from+each, n)
		w.log.once(out[from*width:to*width], from, to, f)
	}
}

func (l *Progress) once(out []float32, from, to int, f func(from, to int)) {
	switch next := l.at + len(out); {
	case l.Stopped:
	case next <= l.Used:
		copy(out, l.Words[l.at:next])
		l.at = next
	case l.Left == 0 || next > len(l.Words):
		l.Stopped = true
	default:
		f(from, to)
		copy(l.Words[l.at:], out)
		l.Left--
		l.at, l.Used = next, next
	}
}
