package expose

import (
	"net"
	"net/http"
	"strconv"
	"strings"

	"github.com/ticktier/ticktier/exporter/burst"
)

// Bursts gives what ticks did between scrapes; *burst.Recorder is one.
type Bursts interface {
	Snapshot(dst *burst.Snapshot, scraper string)
}

// maxAgent is how much of a scraper's name is looked at.
const maxAgent = 200

// scraper is who asks, as far as two scrapes of one can be known to be that: its
// host, for ports change, what it calls itself, and the parameter scraper, by which two
// that are alike in both can be told apart.
func scraper(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr
	}
	agent, name := r.UserAgent(), r.URL.Query().Get("scraper")
	return host + " " + agent[:min(len(agent), maxAgent)] + " " + name[:min(len(name), maxAgent)]
}

// appendBursts appends histograms with classic buckets, which is all that both text
// formats can say, and the range of each.
func appendBursts(dst []byte, s *burst.Snapshot, open bool, starts *starts) []byte {
	for i := range s.Families {
		f := &s.Families[i]
		if len(f.Series) == 0 {
			continue
		}
		dst = appendHead(dst, f, f.Name, "histogram", open)
		for j := range f.Series {
			dst = appendClassic(dst, f, &f.Series[j], open)
			if start, ok := starts.at(f.Series[j].Start); ok && open {
				dst = append(dst, f.Name...)
				dst = appendMs(appendLabels(append(dst, "_created"...), &f.Series[j], ""), start)
			}
		}
		for _, e := range extremes {
			dst = appendExtremes(dst, f, e, open)
		}
	}
	return dst
}

// extreme is a gauge that goes with a histogram.
type extreme struct {
	suffix, help string
	of           func(*burst.Series) float64
}

var extremes = [...]extreme{
	{"_min", " Lowest since this scraper's last scrape.", func(s *burst.Series) float64 { return s.Min }},
	{"_max", " Highest since this scraper's last scrape.", func(s *burst.Series) float64 { return s.Max }},
}

func appendHead(dst []byte, f *burst.Family, name, typ string, open bool) []byte {
	help := func(r *strings.Replacer) {
		dst = append(dst, "# HELP "+name+" "...)
		dst = append(dst, r.Replace(f.Help)...)
		dst = append(dst, '\n')
	}
	if !open {
		help(helpText)
	}
	dst = append(dst, "# TYPE "+name+" "+typ+"\n"...)
	if open {
		if f.Unit != "" && strings.HasSuffix(name, "_"+f.Unit) {
			dst = append(dst, "# UNIT "+name+" "+f.Unit+"\n"...)
		}
		help(quotedText)
	}
	return dst
}

func appendClassic(dst []byte, f *burst.Family, s *burst.Series, open bool) []byte {
	var all uint64
	for i, n := range s.Classic {
		all += n
		dst = append(dst, f.Name...)
		dst = append(dst, "_bucket"...)
		le := "+Inf"
		if i < len(f.Bounds) {
			le = strconv.FormatFloat(f.Bounds[i], 'g', -1, 64)
			if open && !strings.ContainsAny(le, ".e") {
				le += ".0"
			}
		}
		dst = appendLabels(dst, s, le)
		dst = strconv.AppendUint(dst, all, 10)
		dst = append(dst, '\n')
	}
	dst = append(dst, f.Name...)
	dst = appendLabels(append(dst, "_sum"...), s, "")
	dst = strconv.AppendFloat(dst, s.Sum, 'g', -1, 64)
	dst = append(dst, '\n')
	dst = append(dst, f.Name...)
	dst = appendLabels(append(dst, "_count"...), s, "")
	dst = strconv.AppendUint(dst, s.Count, 10)
	return append(dst, '\n')
}

// appendLabels appends a series' labels, with le where it is not empty, and a space.
func appendLabels(dst []byte, s *burst.Series, le string) []byte {
	sep := byte('{')
	for _, l := range s.Labels {
		dst = append(dst, sep)
		dst = append(dst, l.Name...)
		dst = append(dst, `="`...)
		dst = append(dst, quotedText.Replace(utf8Text(l.Value))...)
		dst = append(dst, '"')
		sep = ','
	}
	if le != "" {
		dst = append(dst, sep)
		dst = append(dst, `le="`...)
		dst = append(dst, le...)
		dst = append(dst, '"')
		sep = ','
	}
	if sep == ',' {
		dst = append(dst, '}')
	}
	return append(dst, ' ')
}

func appendExtremes(dst []byte, f *burst.Family, e extreme, open bool) []byte {
	headed := false
	for i := range f.Series {
		s := &f.Series[i]
		if !s.Ranged {
			continue
		}
		if !headed {
			headed = true
			g := *f
			g.Help += e.help
			dst = appendHead(dst, &g, f.Name+e.suffix, "gauge", open)
		}
		dst = append(dst, f.Name...)
		dst = appendLabels(append(dst, e.suffix...), s, "")
		dst = strconv.AppendFloat(dst, e.of(s), 'g', -1, 64)
		dst = append(dst, '\n')
	}
	return dst
}
