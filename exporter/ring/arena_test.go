package ring

import (
	"bytes"
	"strings"
	"testing"
)

// picture draws an arena, one letter a byte: frame 0 is a, frame 1 is b, and so on;
// a dot is a byte of no frame, ^ under it is the head.
func picture(a *arena) (cells, head string) {
	b := bytes.Repeat([]byte{'.'}, len(a.buf))
	for _, f := range a.all() {
		for i := range f.len {
			b[f.off+i] = 'a' + byte(f.id%26)
		}
	}
	return string(b), strings.Repeat(" ", a.head) + "^"
}

// add puts a frame of n bytes in, evicting what is in its way, and says how many
// frames that were.
func add(a *arena, id uint64, n int) (evicted int) {
	off, ok := a.place(n)
	for !ok {
		a.pop()
		evicted++
		off, ok = a.place(n)
	}
	a.push(off, bytes.Repeat([]byte{'a' + byte(id%26)}, n), held{id: id})
	return evicted
}

func TestArenaPictures(t *testing.T) {
	type step struct {
		n       int // bytes to add; negative: the newest frame shrinks to as many
		cells   string
		head    string
		evicted int
	}
	for _, c := range []struct {
		name  string
		steps []step
	}{
		{"fills and comes round", []step{
			{4, "aaaa........", "    ^", 0},
			{4, "aaaabbbb....", "        ^", 0},
			{4, "aaaabbbbcccc", "            ^", 0},
			{4, "ddddbbbbcccc", "    ^", 1},
			{4, "ddddeeeecccc", "        ^", 1},
			{4, "ddddeeeeffff", "            ^", 1},
		}},
		{"a tail too short is skipped", []step{
			{5, "aaaaa.......", "     ^", 0},
			{5, "aaaaabbbbb..", "          ^", 0},
			{3, "ccc..bbbbb..", "   ^", 1},
			{2, "cccddbbbbb..", "     ^", 0},
			{1, "cccdde......", "      ^", 1},
			{6, "cccddeffffff", "            ^", 0},
			{1, "g..ddeffffff", " ^", 1},
		}},
		{"one frame pushes many out", []step{
			{2, "aa..........", "  ^", 0},
			{2, "aabb........", "    ^", 0},
			{2, "aabbcc......", "      ^", 0},
			{2, "aabbccdd....", "        ^", 0},
			{7, "eeeeeee.....", "       ^", 4},
		}},
		{"it wraps behind the frames it pushes out", []step{
			{3, "aaa.........", "   ^", 0},
			{3, "aaabbb......", "      ^", 0},
			{4, "aaabbbcccc..", "          ^", 0},
			{5, "ddddd.cccc..", "     ^", 2},
			{1, "dddddecccc..", "      ^", 0},
			{1, "dddddef.....", "       ^", 1},
		}},
		{"a frame as large as the arena", []step{
			{3, "aaa.........", "   ^", 0},
			{12, "bbbbbbbbbbbb", "            ^", 1},
			{12, "cccccccccccc", "            ^", 1},
			{1, "d...........", " ^", 1},
		}},
		{"the newest shrinks, wherever it is", []step{
			{6, "aaaaaa......", "      ^", 0},
			{-3, "aaa.........", "   ^", 0},
			{4, "aaacccc.....", "       ^", 0},
			{5, "aaaccccddddd", "            ^", 0},
			{-1, "aaaccccd....", "        ^", 0},
			{5, "fffff..d....", "     ^", 2},
		}},
		{"exactly full after a wrap", []step{
			{6, "aaaaaa......", "      ^", 0},
			{6, "aaaaaabbbbbb", "            ^", 0},
			{6, "ccccccbbbbbb", "      ^", 1},
			{1, "ccccccd.....", "       ^", 1},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := &arena{buf: make([]byte, 12)}
			for i, s := range c.steps {
				evicted := 0
				if s.n < 0 {
					a.shrink(a.buf[:-s.n])
				} else {
					evicted = add(a, uint64(i), s.n)
				}
				cells, head := picture(a)
				if cells != s.cells || head != s.head || evicted != s.evicted {
					t.Fatalf("step %d, %d bytes, evicted %d, want %d\n got %s\n     %s\nwant %s\n     %s",
						i, s.n, evicted, s.evicted, cells, head, s.cells, s.head)
				}
			}
		})
	}
}

// Whatever the sizes, frames never overlap, never leave the arena, and keep their
// bytes until they are evicted, and none is evicted that is not in the way.
func TestArenaRandom(t *testing.T) {
	r := seedRand(t)
	for range 200 {
		a := &arena{buf: make([]byte, 1+r.IntN(40))}
		for id := range uint64(100) {
			before := append([]held(nil), a.all()...)
			n := 1 + r.IntN(len(a.buf))
			if r.IntN(4) > 0 {
				n = 1 + r.IntN(1+len(a.buf)/4)
			}
			evicted := add(a, id, n)
			used := make([]int, len(a.buf))
			for _, f := range a.all() {
				for i := range f.len {
					used[f.off+i]++
					if a.buf[f.off+i] != 'a'+byte(f.id%26) {
						t.Fatalf("frame %d was overwritten", f.id)
					}
				}
			}
			for i, n := range used {
				if n > 1 {
					t.Fatalf("byte %d is in %d frames", i, n)
				}
			}
			// The last one evicted lay where the new one is, or behind it in a lap.
			if evicted > 0 && evicted < len(before) {
				small := arena{buf: a.buf, head: lastEnd(before), frames: before[evicted-1:]}
				if _, ok := small.place(n); ok {
					t.Fatalf("frame %d evicted %d frames, one more than needed", id, evicted)
				}
			}
		}
	}
}

func lastEnd(fs []held) int { return fs[len(fs)-1].off + fs[len(fs)-1].len }
