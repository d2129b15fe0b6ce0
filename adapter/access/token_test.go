package access

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/model/labels"
)

const secret1 = "tta_first-token-for-tests"

func TestParseTokens(t *testing.T) {
	hash := HashOf(secret1)
	entry := func(fields string) string { return "tokens:\n- {id: a, hash: \"" + hash + "\", " + fields + "}\n" }
	for name, tc := range map[string]struct{ file, err string }{
		"empty":               {"", ""},
		"no tokens":           {"tokens: []", ""},
		"good":                {entry("labels: {instance: r1, site: lab}, until: 2027-01-01T00:00:00Z"), ""},
		"reader":              {entry("right: read"), ""},
		"no instance":         {entry("labels: {site: lab}"), "needs the label instance"},
		"unknown field":       {entry("labels: {instance: r1}, untill: 2027-01-01T00:00:00Z"), "untill"},
		"no such right":       {entry("right: all"), `right "all"`},
		"no date":             {entry("right: read, until: tomorrow-secret"), "not a token file"},
		"until before from":   {entry("right: read, from: 2027-01-01T00:00:00Z, until: 2026-01-01T00:00:00Z"), "until is not after from"},
		"name of a label":     {entry("labels: {instance: r1, __name__: up}"), "no name for a label"},
		"value of a label":    {entry("labels: {instance: \"r\\n1\"}"), "not printable"},
		"long value":          {entry("labels: {instance: " + strings.Repeat("x", 201) + "}"), "longer than"},
		"hash and name":       {entry("right: read, certificate: x"), "either hash or certificate"},
		"neither":             {"tokens: [{id: a, right: read}]", "either hash or certificate"},
		"a token for a hash":  {"tokens: [{id: a, right: read, hash: " + secret1 + "}]", "hash is not sha256"},
		"hash too long":       {"tokens: [{id: a, right: read, hash: \"" + hash + "00\"}]", "hash is not sha256"},
		"id":                  {"tokens: [{id: \"a b\", right: read, hash: \"" + hash + "\"}]", `id "a b"`},
		"id twice":            {"tokens: [{id: a, right: read, certificate: x}, {id: a, right: read, certificate: y}]", "the id a is there twice"},
		"hash twice":          {"tokens: [{id: a, right: read, hash: \"" + hash + "\"}, {id: b, right: read, hash: \"" + hash + "\"}]", "the hash is there twice"},
		"certificate twice":   {"tokens: [{id: a, right: read, certificate: x}, {id: b, right: read, certificate: x}]", "is there twice"},
		"two documents":       {"tokens: []\n---\ntokens: []", "more than one YAML document"},
		"a list":              {"[" + secret1 + "]", "not a token file"},
		"not YAML":            {"tokens: [", "yaml"},
		"a token as an entry": {"tokens: [" + secret1 + "]", "not a token file"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseTokens([]byte(tc.file))
			if tc.err == "" && err != nil || tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)) {
				t.Fatalf("error %v, want %q", err, tc.err)
			}
			if err != nil && (strings.Contains(err.Error(), secret1) || strings.Contains(err.Error(), "tomorrow-secret")) {
				t.Errorf("the error shows a value: %v", err)
			}
		})
	}
}

func TestStates(t *testing.T) {
	at := func(hour int) *time.Time { x := time.Date(2026, 1, 1, hour, 0, 0, 0, time.UTC); return &x }
	for name, tc := range map[string]struct {
		t    Token
		want [4]State // at 0, 1, 2 and 3 o'clock
	}{
		"always":         {Token{}, [4]State{StateValid, StateValid, StateValid, StateValid}},
		"from 1 until 2": {Token{From: at(1), Until: at(2)}, [4]State{StateEarly, StateValid, StateExpired, StateExpired}},
		"revoked at 1":   {Token{Revoked: at(1), Until: at(2)}, [4]State{StateValid, StateRevoked, StateRevoked, StateRevoked}},
	} {
		var got [4]State
		for i := range got {
			got[i] = tc.t.At(*at(i))
		}
		if got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}

func TestFind(t *testing.T) {
	s, err := ParseTokens([]byte("tokens: [{id: a, hash: \"" + HashOf(secret1) + "\", labels: {site: lab, instance: r1}}]"))
	if err != nil {
		t.Fatal(err)
	}
	for _, other := range []string{"", "x", secret1 + "x", secret1[1:], strings.ToUpper(secret1), HashOf(secret1), strings.Repeat("x", 1000)} {
		if s.find(other) != nil {
			t.Errorf("%q is taken for the token", other)
		}
	}
	found := s.find(secret1)
	if found == nil {
		t.Fatal("the token is not found")
	}
	want := []labels.Label{{Name: "instance", Value: "r1"}, {Name: "site", Value: "lab"}}
	if diff := cmp.Diff(want, s.forced[found].Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	if n := testing.AllocsPerRun(100, func() { s.find("tta_" + secret1[4:]) }); n > 1 {
		t.Errorf("%v allocations to find a token", n)
	}
}

func TestNewSecret(t *testing.T) {
	a, hash := NewSecret()
	b, _ := NewSecret()
	if a == b || len(a) != 4+43 || HashOf(a) != hash || HashOf(b) == hash {
		t.Errorf("tokens %q and %q, hash %q", a, b, hash)
	}
}

// FuzzParseTokens: whatever a file says, it is taken or refused, and what is taken is
// valid and means the same when it is written again.
func FuzzParseTokens(f *testing.F) {
	f.Add([]byte("tokens: [{id: a, hash: \"" + HashOf(secret1) + "\", labels: {instance: r1}, until: 2027-01-01T00:00:00Z}]"))
	f.Add([]byte("tokens:\n- id: b\n  certificate: x.example\n  right: admin\n  revoked: 2026-01-01\n"))
	f.Add([]byte("tokens: &a [*a]"))
	f.Add([]byte("a: &a [1,1]\nb: &b [*a,*a]\n"))
	f.Add([]byte("---\n...\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := ParseTokens(b)
		if err != nil {
			return
		}
		again, err := encode(s.list)
		if err != nil {
			t.Fatal(err)
		}
		s2, err := ParseTokens(again)
		if err != nil {
			t.Fatalf("written again it is refused: %v\n%s", err, again)
		}
		same := cmp.Comparer(func(a, b time.Time) bool { return a.Equal(b) })
		if diff := cmp.Diff(s.list, s2.list, same); diff != "" {
			t.Fatalf("written again it is another (-was +is):\n%s", diff)
		}
		for _, tok := range s.list {
			if tok.ID == "" || tok.Right == RightWrite && tok.Labels["instance"] == "" {
				t.Fatalf("taken: %+v", tok)
			}
		}
	})
}
