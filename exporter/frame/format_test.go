package frame

import (
	"encoding/hex"
	"os"
	"regexp"
	"strings"
	"testing"
)

// exampleTicks are the ticks of the worked example in FORMAT.md.
func exampleTicks() []Tick {
	return []Tick{
		{Seq: 100, Time: 10_000_000_000, Read: 1, Values: []int64{5000, 0, -3}, Present: []uint64{0b101}},
		{Seq: 101, Time: 10_100_000_000, Read: 1, Values: []int64{5010, 0, -3}, Present: []uint64{0b101}},
		{Seq: 102, Time: 10_200_000_000, Read: 1, Values: []int64{5020, 0, -3}, Present: []uint64{0b101}},
		{Seq: 105, Time: 10_504_000_000, Read: 3, Values: []int64{5050, 7, -4}, Present: []uint64{0b111}},
	}
}

// The worked example of FORMAT.md is what the encoder writes.
func TestFormatExample(t *testing.T) {
	md, err := os.ReadFile("FORMAT.md")
	if err != nil {
		t.Fatal(err)
	}
	_, example, _ := strings.Cut(string(md), "## Worked example")
	var want strings.Builder
	for _, m := range regexp.MustCompile("(?m)^\\| `([0-9a-f ]+)` \\|").FindAllStringSubmatch(example, -1) {
		want.WriteString(strings.ReplaceAll(m[1], " ", ""))
	}
	var e Encoder
	ticks := exampleTicks()
	b := e.Seal(encode(&e, ticks))
	check(t, b, ticks)
	if got := hex.EncodeToString(b); got != want.String() {
		t.Errorf("FORMAT.md says\n%s\nthe encoder writes\n%s", want.String(), got)
	}
}
