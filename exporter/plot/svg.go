package plot

import (
	"bytes"
	"fmt"
	"html"
	"io"
)

// svg is a surface that becomes a vector picture.
type svg struct{ b bytes.Buffer }

func newSVG(width, height int) *svg {
	s := &svg{}
	fmt.Fprintf(&s.b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n",
		width, height, width, height)
	return s
}

func (s *svg) rect(x, y, w, h float64, colour string) {
	fmt.Fprintf(&s.b, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s"/>`+"\n", x, y, w, h, colour)
}

func (s *svg) text(x, y float64, t string, st style) {
	fmt.Fprintf(&s.b, `<text x="%.1f" y="%.1f"`, x, y)
	switch st.anchor {
	case middle:
		s.b.WriteString(` text-anchor="middle"`)
	case end:
		s.b.WriteString(` text-anchor="end"`)
	}
	if st.colour != "" {
		fmt.Fprintf(&s.b, ` fill="%s"`, st.colour)
	}
	if st.bold {
		s.b.WriteString(` font-weight="bold"`)
	}
	if st.large {
		s.b.WriteString(` font-size="16"`)
	}
	fmt.Fprintf(&s.b, ">%s</text>\n", html.EscapeString(t))
}

func (s *svg) path(points []at, verb byte) {
	var last at
	for i, p := range points {
		switch {
		case i == 0:
			fmt.Fprintf(&s.b, "%c%.1f %.1f", verb, p.x, p.y)
		case p.x == last.x:
			fmt.Fprintf(&s.b, "V%.1f", p.y)
		case p.y == last.y:
			fmt.Fprintf(&s.b, "H%.1f", p.x)
		default:
			fmt.Fprintf(&s.b, "L%.1f %.1f", p.x, p.y)
		}
		last = p
	}
}

func (s *svg) line(points []at, colour string) {
	fmt.Fprintf(&s.b, `<path fill="none" stroke="%s" d="`, colour)
	s.path(points, 'M')
	s.b.WriteString(`"/>` + "\n")
}

func (s *svg) area(upper, lower []at, colour string) {
	fmt.Fprintf(&s.b, `<path fill="%s" d="`, colour)
	s.path(upper, 'M')
	for i := len(lower) - 1; i >= 0; i-- {
		fmt.Fprintf(&s.b, "L%.1f %.1f", lower[i].x, lower[i].y)
	}
	s.b.WriteString(`Z"/>` + "\n")
}

func (s *svg) finish(w io.Writer) error {
	s.b.WriteString("</svg>\n")
	_, err := s.b.WriteTo(w)
	return err
}
