package collectors

var kmsgNetwork = Metric{Name: "node_kmsg_network_records_total", Type: Counter,
	Help: "Records that the kernel logged and whose text names a network device, since the exporter started."}

// maxNamed is how many network devices of one record are told of; all are counted.
const maxNamed = 4

// kmsgDevices finds the network devices that records name.
type kmsgDevices struct {
	dir   dir
	rows  *table[kmsgDevice]
	read  uint64 // number of reads that found records
	texts uint64 // number of records
	named []string
}

// kmsgDevice is an interface that there is, or was.
type kmsgDevice struct {
	name string
	slot int32 // slot + 1
	gone bool
	n    uint64
	read uint64 // the last read that named it
	text uint64 // the last record that named it
}

func newKmsgDevices(dir string) kmsgDevices {
	return kmsgDevices{dir: newDir(dir), rows: newTable[kmsgDevice](maxInterfaces), named: make([]string, 0, maxNamed)}
}

// list learns which interfaces there are. One that is gone is still known, for the
// kernel tells of it as it goes.
func (d *kmsgDevices) list() {
	d.read++
	d.rows.begin()
	err := d.dir.each(func(name []byte, _ bool) {
		if r, state := d.rows.find(name); r != nil {
			r.gone = false
			if state == rowNew {
				r.name = label(name)
			}
		}
	})
	if err != nil {
		d.dir.close()
	}
	d.rows.end(func(r *kmsgDevice) { r.gone = true })
}

// count counts a record for every interface that its text names, and returns some of
// them; the slice is valid until the next call. A name is a whole word: eth1 is not in
// "eth10", nor in "eth1.100", but in "port 2(eth1)" and in "lost eth1."
func (d *kmsgDevices) count(text []byte) []string {
	d.texts++
	d.named = d.named[:0]
	for at := 0; at < len(text); {
		end := at
		for end < len(text) && inName(text[end]) {
			end++
		}
		d.word(text[at:end])
		at = end + 1
	}
	return d.named
}

// word looks a word up, as it is and without the full stop or dash behind it.
func (d *kmsgDevices) word(word []byte) {
	for len(word) > 0 {
		if i, ok := d.rows.index[string(word)]; ok {
			d.name(&d.rows.rows[i].row)
			return
		}
		if last := word[len(word)-1]; last != '.' && last != '-' {
			return
		}
		word = word[:len(word)-1]
	}
}

func (d *kmsgDevices) name(r *kmsgDevice) {
	if r.text == d.texts {
		return // twice in one record
	}
	r.text, r.read = d.texts, d.read
	r.n++
	if len(d.named) < maxNamed {
		d.named = append(d.named, r.name)
	}
}

// inName tells whether interfaces are called so.
func inName(c byte) bool {
	return c|0x20-'a' < 26 || c-'0' < 10 || c == '_' || c == '-' || c == '.'
}

// set reports the interfaces that were ever named. The series of one that is gone ends
// when there are records and none of them names it.
func (d *kmsgDevices) set(out *Out) {
	for _, e := range d.rows.rows {
		r := &e.row
		if r.n > 0 && r.slot == 0 {
			r.slot = int32(out.Add(&kmsgNetwork, Label{"device", r.name})) + 1
		}
		switch {
		case r.slot == 0:
		case r.gone && r.read != d.read:
			out.Clear(int(r.slot - 1))
		default:
			out.Set(int(r.slot-1), int64(r.n))
		}
	}
}
