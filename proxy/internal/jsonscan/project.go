package jsonscan

// Projector keeps the selected members of a document that comes in pieces, and
// checks its syntax as [Check] does. Its memory is what is kept, a stack of
// maxDepth entries, one member name and a copy of one piece; it never holds the document.
//
// What is kept stays byte for byte: names, numbers, escapes, the order of
// members, and the white space inside values that are kept whole. Only what
// is between the members of a selected object or the elements of an array
// on the way is written anew, without white space.
type Projector struct {
	sel      *Selection
	maxDepth int
	out      []byte
	frames   []frame // the open containers, innermost last
	rows     int
	looked   []bool // by node: an object was there to have it
	found    []bool // by node: an object had it

	state  state
	member *selected // of the member whose value comes next; nil drops it
	number number

	// What follows is of the data at hand: what was held back of the pieces before, and
	// this one.
	read     int    // bytes before it
	from     int    // where in it what is kept begins; -1 for nowhere
	nameFrom int    // where in it the name that is being read begins; -1 for one that is not looked up
	wait     bool   // what begins where the reading stopped may go on in the next piece
	held     []byte // the end of the last piece that was not read: a part of an escape, a character, a word or a name
	err      error
}

// frame is one open container.
type frame struct {
	open byte // '{' or '['
	mode mode
	some bool      // something was written into it
	node *selected // of its members or elements, when they are selected among
	n    int       // values in it until now
}

// mode says what becomes of the values in a container.
type mode uint8

const (
	drop   mode = iota
	keep        // with everything in it
	choose      // what is selected
)

// state is what a projector expects next.
type state uint8

const (
	wantValue state = iota
	wantFirst       // a value, or the end of an array that has begun
	wantName
	wantFirstName // a name, or the end of an object that has begun
	wantColon
	wantNext // behind a value: a comma, the end of a container or of the document
	inName
	inString
	inWord
	inNumber
)

// Projector returns a projector for one document, nested at most maxDepth deep.
func (s *Selection) Projector(maxDepth int) *Projector {
	flags := make([]bool, 2*s.nodes)
	return &Projector{
		sel: s, maxDepth: maxDepth, frames: make([]frame, 0, min(maxDepth, 16)), rows: -1,
		looked: flags[:s.nodes], found: flags[s.nodes:], from: -1, nameFrom: -1,
	}
}

// Kept returns what has been kept until now: one JSON value after a successful
// [Projector.Close].
func (p *Projector) Kept() []byte { return p.out }

// Rows returns the number of elements of the longest array among the members of
// the document, kept or not; -1 when it has none.
func (p *Projector) Rows() int { return p.rows }

// Unknown returns the paths with a name that nothing had where one was looked
// for. A null or an empty array on the way says nothing about what is below it;
// a text or a number says that there is nothing.
func (p *Projector) Unknown() (paths []string) {
	for i, end := range p.sel.ends {
		for n := end; n != p.sel.root; n = n.parent {
			// One name that is wrong makes the whole path wrong; the model is shown the path that it wrote.
			if p.looked[n.id] && !p.found[n.id] {
				paths = append(paths, p.sel.paths[i])
				break
			}
		}
	}
	return paths
}

// Write takes the next piece of the document. Errors are [ErrDepth] or a
// [*SyntaxError]; after one nothing more is taken.
func (p *Projector) Write(piece []byte) (int, error) {
	if p.err != nil {
		return 0, p.err
	}
	data := piece
	if len(p.held) > 0 {
		p.held = append(p.held, piece...)
		data = p.held
	}
	i := 0
	for p.wait = false; i < len(data) && !p.wait && p.err == nil; {
		i = p.step(data, i)
	}
	if p.err != nil {
		return 0, p.err
	}
	if p.from >= 0 {
		p.out = append(p.out, data[p.from:i]...)
		p.from = 0
	}
	// A name that may be selected is read again from its quote when more of it is there; a longer
	// one than any that is selected is not, as it would be held back whole.
	if from := p.nameFrom; from >= 0 {
		if i-from <= 6*p.sel.longest+2 { // an escape takes six bytes, for one at least
			i, p.state = from, wantName
		}
		p.nameFrom = -1
	}
	// data may be held itself: append moves the rest to its beginning, overlapping or not.
	p.held = append(p.held[:0], data[i:]...)
	p.read += i
	return len(piece), nil
}

// Close says that the document ends here. The error is that of [Projector.Write]
// or a [*SyntaxError] for a document that is not complete.
func (p *Projector) Close() error {
	// Nothing ends a number at the end of a document, such as 12.
	if p.err == nil && p.state == inNumber && p.number.complete() {
		p.ended(nil, 0)
	}
	if p.err == nil && (p.state != wantNext || len(p.frames) > 0) {
		p.fail(0, "the document ends before it is complete")
	}
	return p.err
}

func (p *Projector) fail(i int, what string) {
	p.err = &SyntaxError{p.read + i, what}
}

// step reads at data[i] and returns where to go on. It moves on or changes the
// state.
func (p *Projector) step(data []byte, i int) int {
	switch p.state {
	case inName, inString:
		return p.text(data, i)
	case inNumber:
		return p.digits(data, i)
	case inWord:
		return p.word(data, i)
	}
	switch c := data[i]; c {
	case ' ', '\n', '\r', '\t':
	default:
		p.token(data, i, c)
		if p.state == inWord { // which is read whole
			return i
		}
	}
	return i + 1
}

// token takes a byte that begins something or is between values.
func (p *Projector) token(data []byte, i int, c byte) {
	if p.state == wantFirst && c == ']' || p.state == wantFirstName && c == '}' {
		p.close(data, i)
		return
	}
	switch p.state {
	case wantFirst, wantValue:
		p.value(i, c)
	case wantFirstName, wantName:
		p.name(i, c)
	case wantColon:
		if c != ':' {
			p.fail(i, "expected a colon after the member name")
			return
		}
		p.state = wantValue
	case wantNext:
		p.next(data, i, c)
	}
}

// next takes the byte after a value.
func (p *Projector) next(data []byte, i int, c byte) {
	if len(p.frames) == 0 {
		p.fail(i, "text after the value")
		return
	}
	switch open := p.frames[len(p.frames)-1].open; {
	case c == open+2: // ']' and '}' follow their openers by two
		p.close(data, i)
	case c != ',':
		p.fail(i, "expected a comma or the closing bracket")
	case open == '{':
		p.state = wantName
	default:
		p.state = wantValue
	}
}

func (p *Projector) name(i int, c byte) {
	if c != '"' {
		p.fail(i, "expected a member name in quotes")
		return
	}
	p.state = inName
	if p.frames[len(p.frames)-1].mode == choose {
		p.nameFrom = i
	}
}

// named has read the name of a member among which some are selected.
func (p *Projector) named(name []byte) {
	f := &p.frames[len(p.frames)-1]
	if p.member = f.node.child(name); p.member == nil {
		return
	}
	// Even when its value is null: the name exists.
	p.found[p.member.id] = true
	p.comma(f)
	p.out = append(append(p.out, name...), ':')
}

func (p *Projector) comma(f *frame) {
	if f.some {
		p.out = append(p.out, ',')
	}
	f.some = true
}

// value begins the value at i.
func (p *Projector) value(i int, c byte) {
	m, node := keep, p.sel.root
	if n := len(p.frames); n > 0 {
		f := &p.frames[n-1]
		f.n++
		switch m, node = f.mode, f.node; {
		case m == choose && f.open == '{':
			if node = p.member; node == nil {
				m = drop
			}
		case m == choose:
			p.comma(f)
		}
	}
	if m != drop && node != nil {
		// Selected: a value at the end of a path is kept whole, and so is one that has nothing below it.
		if m = choose; node.whole() || !container(c) {
			if !node.whole() && c != 'n' {
				p.lookedFor(node) // there is nothing below a text or a number
			}
			m, p.from = keep, i
		}
	}
	if container(c) {
		p.open(c, m, node)
		return
	}
	p.begin(i, c)
}

func container(c byte) bool { return c == '{' || c == '[' }

func (p *Projector) lookedFor(n *selected) {
	for _, c := range n.children {
		p.looked[c.id] = true
	}
}

// open enters a container. Below one that is kept or dropped as a whole there is
// no node.
func (p *Projector) open(c byte, m mode, node *selected) {
	if len(p.frames) >= p.maxDepth {
		p.err = ErrDepth
		return
	}
	if m != choose {
		// Its parts are kept or dropped with it, whatever their names.
		node = nil
	} else {
		p.out = append(p.out, c)
		if c == '{' {
			p.lookedFor(node)
		}
	}
	p.frames = append(p.frames, frame{open: c, mode: m, node: node})
	if p.state = wantFirst; c == '{' {
		p.state = wantFirstName
	}
}

// close leaves the container that ends at i.
func (p *Projector) close(data []byte, i int) {
	n := len(p.frames) - 1
	f := p.frames[n]
	p.frames = p.frames[:n]
	// Of answers like {"ok":true,"data":[…]}: how many rows there were, which paging needs whatever is kept.
	if n == 1 && f.open == '[' && p.frames[0].open == '{' {
		p.rows = max(p.rows, f.n)
	}
	// Its bracket was written apart from its members, and so is this one.
	if f.mode == choose {
		p.out = append(p.out, f.open+2)
	}
	p.ended(data, i+1)
}

// ended is called after a value: what was kept of it in this piece is written.
func (p *Projector) ended(data []byte, i int) {
	p.state = wantNext
	if n := len(p.frames); p.from >= 0 && (n == 0 || p.frames[n-1].mode != keep) {
		p.out = append(p.out, data[p.from:i]...)
		p.from = -1
	}
}
