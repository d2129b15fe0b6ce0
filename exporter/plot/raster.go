package plot

import (
	"image"
	"image/color"
	"math"
	"strconv"

	"golang.org/x/image/font/basicfont"
)

// zoom is how many pixels a unit of the picture has.
const zoom = 2

// raster is a surface that becomes a picture of pixels, each the number of a colour.
type raster struct {
	w, h    int
	pix     []byte
	palette []color.RGBA
	numbers map[string]byte
}

func newRaster(width, height int) *raster {
	r := &raster{w: width * zoom, h: height * zoom, numbers: map[string]byte{}}
	r.pix = make([]byte, r.w*r.h)
	return r
}

// colour is the number of a colour. There are a few dozen at most.
func (r *raster) colour(s string) byte {
	if s == "" {
		s = "#000000"
	}
	n, ok := r.numbers[s]
	if !ok {
		v, err := strconv.ParseUint(s[1:], 16, 32)
		if err != nil || len(s) != 7 || len(r.palette) > 255 {
			panic("BUG: plot: colour " + s)
		}
		n = byte(len(r.palette))
		r.numbers[s] = n
		r.palette = append(r.palette, color.RGBA{byte(v >> 16), byte(v >> 8), byte(v), 255})
	}
	return n
}

// fill fills pixels [x0, x1) × [y0, y1).
func (r *raster) fill(x0, y0, x1, y1 int, c byte) {
	x0, x1 = max(x0, 0), min(x1, r.w)
	for y := max(y0, 0); y < min(y1, r.h); y++ {
		for x := x0; x < x1; x++ {
			r.pix[y*r.w+x] = c
		}
	}
}

func px(v float64) int { return int(math.Round(v * zoom)) }

func (r *raster) rect(x, y, w, h float64, colour string) {
	r.fill(px(x), px(y), max(px(x+w), px(x)+1), max(px(y+h), px(y)+1), r.colour(colour))
}

func (r *raster) line(points []at, colour string) {
	c := r.colour(colour)
	for i := 1; i < len(points); i++ {
		a, b := points[i-1], points[i]
		dx, dy := (b.x-a.x)*zoom, (b.y-a.y)*zoom
		n := int(max(math.Abs(dx), math.Abs(dy))) + 1
		for k := range n + 1 {
			f := float64(k) / float64(n)
			x, y := int(math.Round(a.x*zoom+f*dx)), int(math.Round(a.y*zoom+f*dy))
			r.fill(x-zoom/2, y-zoom/2, x-zoom/2+zoom, y-zoom/2+zoom, c)
		}
	}
}

// area fills column by column.
func (r *raster) area(upper, lower []at, colour string) {
	c := r.colour(colour)
	for i := 1; i < len(upper); i++ {
		x0, x1 := px(upper[i-1].x), px(upper[i].x)
		for x := x0; x < max(x1, x0+1); x++ {
			f := float64(x-x0) / float64(max(x1-x0, 1))
			top := upper[i-1].y + f*(upper[i].y-upper[i-1].y)
			low := lower[i-1].y + f*(lower[i].y-lower[i-1].y)
			r.fill(x, px(top), x+1, px(low), c)
		}
	}
}

// text writes with X11's 7 × 13 font, each of its pixels as large as a unit, twice for
// bold; what it has no letter for is a box.
func (r *raster) text(x, y float64, t string, s style) {
	face := basicfont.Face7x13
	mask := face.Mask.(*image.Alpha)
	c := r.colour(s.colour)
	runes := []rune(t)
	size := zoom
	width := float64(len(runes) * face.Advance * size / zoom)
	switch s.anchor {
	case middle:
		x -= width / 2
	case end:
		x -= width
	}
	left, base := px(x), px(y)
	for i, char := range runes {
		if char < ' ' || char > '~' {
			char = '\ufffd'
		}
		glyph := int(char - ' ')
		if char == '\ufffd' {
			glyph = 95
		}
		for gy := range face.Ascent + face.Descent {
			for gx := range face.Width {
				if mask.AlphaAt(gx, glyph*(face.Ascent+face.Descent)+gy).A == 0 {
					continue
				}
				px, py := left+(i*face.Advance+gx)*size, base+(gy-face.Ascent)*size
				r.fill(px, py, px+size, py+size, c)
				if s.bold || s.large {
					r.fill(px+1, py, px+size+1, py+size, c)
				}
			}
		}
	}
}
