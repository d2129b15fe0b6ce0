package top

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// What a terminal is told (ECMA-48, and xterm's other screen).
const (
	enter  = "\x1b[?1049h\x1b[?25l" // another screen, without a cursor
	leave  = "\x1b[?25h\x1b[?1049l"
	home   = "\x1b[H"
	eol    = "\x1b[K" // clear what is behind on the line
	below  = "\x1b[J" // clear what is below
	bold   = "\x1b[1m"
	red    = "\x1b[31m"
	normal = "\x1b[0m"
)

// Screen is where Run shows its screens.
type Screen struct {
	// Terminal says that a screen takes the place of the one before; else they follow
	// each other.
	Terminal bool
	// Colour allows bold and red.
	Colour bool
	// Size, on a terminal, tells how many columns and lines it has now; 0 is not known.
	Size func() (columns, lines int)
}

// Widths of the two layouts. The small one is for fewer columns than the wide one needs.
const (
	plainColumns           = 100 // where there is no terminal
	maxMarks               = 50
	wideName, wideNumber   = 26, 12
	smallName, smallNumber = 14, 6
	wideColumns            = wideName + 3*wideNumber + 2 + 10
)

// hot is the share of a CPU, in per cent, from which it is shown in red.
const hot = 90

// note says what a share of CPU is worth. It is on each screen because a screen is what
// people take pictures of.
const (
	noteStat  = "CPU by /proc/stat, counted in the kernel's own ticks: shorter bursts are undercounted."
	noteTasks = "CPU by /proc/stat, counted in the kernel's own ticks; tasks: exact, without interrupts."
)

// paint is the screen of a second that is over.
func (c *Screen) paint(s *second) string {
	columns, lines := plainColumns, 0
	if c.Terminal && c.Size != nil {
		if w, h := c.Size(); w > 0 {
			columns, lines = w, h
		}
	}
	rows := s.sorted()
	text := []string{
		cut(fmt.Sprintf("%s  %d ticks, %d missing", time.Unix(s.at, 0).Format(time.DateTime), s.ticks, s.lost), columns), "",
		c.style(bold, header(columns)),
	}
	left := 0
	if room := lines - len(text) - 2; lines > 0 && len(rows) > room {
		left = len(rows) - max(room-1, 1)
		rows = rows[:len(rows)-left]
	}
	note := ""
	for _, r := range rows {
		text = append(text, c.line(r, columns))
		switch {
		case r.kind == cpuShare && note == "":
			note = noteStat
		case r.kind == cpuTasks:
			note = noteTasks
		}
	}
	if left > 0 {
		text = append(text, cut(fmt.Sprintf("… %d more", left), columns))
	}
	text = append(text, "", cut(note, columns))
	if !c.Terminal {
		return strings.Join(text, "\n") + "\n\n"
	}
	if lines > 0 {
		text = text[:min(len(text), lines)]
	}
	return home + strings.Join(text, eol+"\r\n") + eol + below
}

func header(columns int) string {
	if columns < wideColumns {
		return cut(fmt.Sprintf("%*s%*s%*s%*s", smallName, "", smallNumber, "min", smallNumber, "mean", smallNumber, "max"), columns)
	}
	return fmt.Sprintf("%*s%*s%*s%*s", wideName, "", wideNumber, "lowest", wideNumber, "mean", wideNumber, "highest")
}

// line is a row's.
func (c *Screen) line(r *row, columns int) string {
	number, name, width := r.unit.text, wideName, wideNumber
	if columns < wideColumns {
		number, name, width = r.unit.brief, smallName, smallNumber
	}
	sum := 0.0
	for _, v := range r.values {
		sum += v
	}
	highest := slices.Max(r.values)
	text := fmt.Sprintf("%s%*s%*s", r.name(name), width, number(slices.Min(r.values)), width, number(sum/float64(len(r.values))))
	if columns < utf8.RuneCountInString(text)+width {
		return cut(text, columns)
	}
	most := fmt.Sprintf("%*s", width, number(highest))
	if r.kind <= cpuTasks && highest >= hot {
		most = c.style(red, most)
	}
	room := columns - name - 3*width - 1
	if room <= 1 {
		return text + most
	}
	return text + most + " " + r.marks(min(room, maxMarks))
}

// name is a row's name in n columns. Where it is too long, it is the interface's that
// is cut.
func (r *row) name(n int) string {
	what := r.what
	if r.kind == packetsRow {
		what += " packets"
		if n == smallName {
			what = r.what + " pkt"
		}
	}
	of := cut(r.of, n-1-utf8.RuneCountInString(what))
	text := strings.TrimSpace(of + " " + what)
	return text + strings.Repeat(" ", max(0, n-utf8.RuneCountInString(text)))
}

// cut is the first n characters of s, of which the last stands for what is left out.
func cut(s string, n int) string {
	runes := []rune(s)
	switch {
	case len(runes) <= n:
		return s
	case n <= 0:
		return ""
	}
	return string(runes[:n-1]) + "…"
}

func (c *Screen) style(code, s string) string {
	if !c.Colour {
		return s
	}
	return code + s + normal
}
