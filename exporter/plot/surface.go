package plot

import "io"

// surface is what a picture is drawn on, in units of the picture's own measures. y
// goes down, and colours are "#rrggbb".
type surface interface {
	rect(x, y, w, h float64, colour string)
	// text is written with its base line at y; anchor says where x is.
	text(x, y float64, t string, s style)
	// line joins points, with a stroke of one unit.
	line(points []at, colour string)
	// area fills what is between two lines that share their x.
	area(upper, lower []at, colour string)
	// finish writes the picture.
	finish(w io.Writer) error
}

type at struct{ x, y float64 }

// anchor is the part of a text that x says the place of.
type anchor int

const (
	begin anchor = iota
	middle
	end
)

// style is how a text looks; the zero value is plain and black.
type style struct {
	anchor anchor
	colour string
	bold   bool
	large  bool
}
