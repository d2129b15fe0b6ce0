package access

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/prometheus/common/model"
)

// Right is what a token or a user may do. Each holds only for itself, but RightAdmin
// holds for all.
type Right string

// The rights.
const (
	RightWrite Right = "write"
	RightRead  Right = "read"
	RightAdmin Right = "admin"
)

// Token is one entry of a token file. It holds no secret.
type Token struct {
	ID          string            `yaml:"id"`
	Hash        string            `yaml:"hash,omitempty"`
	Certificate string            `yaml:"certificate,omitempty"`
	Right       Right             `yaml:"right,omitempty"`
	Labels      map[string]string `yaml:"labels,omitempty"`
	From        *time.Time        `yaml:"from,omitempty"`
	Until       *time.Time        `yaml:"until,omitempty"`
	Revoked     *time.Time        `yaml:"revoked,omitempty"`
	Comment     string            `yaml:"comment,omitempty"`
}

const (
	secretPrefix   = "tta_"
	hashPrefix     = "sha256:"
	minSecretBytes = 16
	maxSecretBytes = 512
	maxLabels      = 16
	maxValueBytes  = 200
)

var tokenID = regexp.MustCompile(`^[A-Za-z0-9._:@-]{1,128}$`)

// NewSecret returns a new token, to be shown once, and the hash that is kept.
func NewSecret() (secret, hash string) {
	b := make([]byte, 32)
	rand.Read(b) // never fails
	secret = secretPrefix + base64.RawURLEncoding.EncodeToString(b)
	return secret, HashOf(secret)
}

// HashOf is the hash of a token as the file has it.
func HashOf(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hashPrefix + hex.EncodeToString(sum[:])
}

// State is whether a token is valid, in words for its holder.
type State string

// The states of a token.
const (
	StateValid   State = "valid"
	StateEarly   State = "not valid yet"
	StateExpired State = "expired"
	StateRevoked State = "revoked"
	StateUnknown State = "unknown"
)

// At is the token's state at a time.
func (t *Token) At(now time.Time) State {
	switch {
	case t.Revoked != nil && !now.Before(*t.Revoked):
		return StateRevoked
	case t.Until != nil && !now.Before(*t.Until):
		return StateExpired
	case t.From != nil && now.Before(*t.From):
		return StateEarly
	}
	return StateValid
}

// may tells whether the token is for that.
func (t *Token) may(r Right) bool { return t.Right == r || t.Right == RightAdmin }

// check says what is wrong with an entry. It fills in the right that is meant.
func (t *Token) check() (sum [sha256.Size]byte, err error) {
	if t.Right == "" {
		t.Right = RightWrite
	}
	switch {
	case !tokenID.MatchString(t.ID):
		return sum, fmt.Errorf("id %q is not 1 to 128 of A-Z a-z 0-9 . _ : @ -", clip(t.ID))
	case t.Right != RightWrite && t.Right != RightRead && t.Right != RightAdmin:
		return sum, fmt.Errorf("right %q is not write, read or admin", clip(string(t.Right)))
	case (t.Hash == "") == (t.Certificate == ""):
		return sum, errors.New("either hash or certificate must be there")
	case t.Certificate != "" && (len(t.Certificate) > maxValueBytes || !printable(t.Certificate)):
		return sum, errors.New("certificate is too long or not printable")
	case t.Right == RightWrite && t.Labels["instance"] == "":
		return sum, errors.New("a token that writes needs the label instance")
	case t.From != nil && t.Until != nil && !t.From.Before(*t.Until):
		return sum, errors.New("until is not after from")
	}
	if err := checkLabels(t.Labels); err != nil {
		return sum, err
	}
	if t.Hash == "" {
		return sum, nil
	}
	digits, ok := strings.CutPrefix(t.Hash, hashPrefix)
	if n, err := hex.Decode(sum[:], []byte(digits[:min(len(digits), 2*len(sum))])); !ok || err != nil || n != len(sum) || len(digits) != 2*len(sum) {
		return sum, errors.New("hash is not sha256: and 64 hexadecimal digits") // what is there might be the token itself
	}
	return sum, nil
}

func checkLabels(labels map[string]string) error {
	if len(labels) > maxLabels {
		return fmt.Errorf("%d labels are more than %d", len(labels), maxLabels)
	}
	for name, value := range labels {
		switch {
		case !model.LegacyValidation.IsValidLabelName(name), strings.HasPrefix(name, "__"), len(name) > maxValueBytes:
			return fmt.Errorf("%q is no name for a label here", clip(name))
		case value == "", len(value) > maxValueBytes, !printable(value):
			return fmt.Errorf("the value of the label %s is empty, longer than %d bytes or not printable", name, maxValueBytes)
		}
	}
	return nil
}

func printable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}

func clip(s string) string {
	if len(s) > 64 {
		return s[:64] + "…"
	}
	return s
}

// Tokens is what a token file says. It does not change.
type Tokens struct {
	list   []Token
	byHash map[[sha256.Size]byte]*Token
	byName map[string]*Token
	forced map[*Token]*Entry
}

// List returns the entries in their order; they are not to be changed.
func (s *Tokens) List() []Token { return s.list }

// find returns the entry of a token, nil where there is none. The table is asked by
// the hash, about which the time that takes says nothing that helps to guess a token;
// the hashes are then compared in constant time.
func (s *Tokens) find(secret string) *Token {
	if len(secret) < minSecretBytes || len(secret) > maxSecretBytes {
		return nil
	}
	sum := sha256.Sum256([]byte(secret))
	t := s.byHash[sum]
	if t == nil {
		return nil
	}
	want, err := hex.DecodeString(t.Hash[len(hashPrefix):])
	if err != nil || subtle.ConstantTimeCompare(want, sum[:]) != 1 {
		return nil
	}
	return t
}
