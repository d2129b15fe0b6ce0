package frame

import "encoding/binary"

// cursor reads bytes that may be hostile. Its methods return false, and nothing
// else of use, where the bytes end too early.
type cursor struct {
	b   []byte
	pos int
}

// uint64 reads eight bytes that the caller knows to be there.
func (c *cursor) uint64() uint64 {
	v := binary.LittleEndian.Uint64(c.b[c.pos:])
	c.pos += 8
	return v
}

func (c *cursor) uvarint() (uint64, bool) {
	if c.pos < len(c.b) {
		if v := c.b[c.pos]; v < 0x80 {
			c.pos++
			return uint64(v), true
		}
	}
	v, n := binary.Uvarint(c.b[c.pos:])
	if n <= 0 {
		return 0, false
	}
	c.pos += n
	return v, true
}

func (c *cursor) zigzag() (int64, bool) {
	u, ok := c.uvarint()
	return int64(u>>1) ^ -int64(u&1), ok
}

// skip passes over n bytes.
func (c *cursor) skip(n int) bool {
	if n > len(c.b)-c.pos {
		return false
	}
	c.pos += n
	return true
}

// uvarints passes over n uvarints.
func (c *cursor) uvarints(n uint64) bool {
	for ; n > 0; n-- {
		if _, ok := c.uvarint(); !ok {
			return false
		}
	}
	return true
}

// rowHead passes over what is in a row before its changes.
func (c *cursor) rowHead() bool {
	if c.pos >= len(c.b) {
		return false
	}
	head := c.b[c.pos]
	c.pos++
	n := uint64(0)
	for _, bit := range [...]byte{rowGap, rowTime, rowPeriod} {
		if head&bit != 0 {
			n++
		}
	}
	if !c.uvarints(n) ||
		head&rowMaskIdx != 0 && !c.skip(1) ||
		head&rowMaskNew != 0 && !c.skip(8) {
		return false
	}
	if head&rowToggles == 0 {
		return true
	}
	count, ok := c.uvarint()
	return ok && c.uvarints(count)
}

// keyHead passes over what is in a key row of n slots before its changes.
func (c *cursor) keyHead(n int) bool {
	return c.uvarints(1) && c.skip(8+(n+7)/8)
}
