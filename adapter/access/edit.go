package access

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"go.yaml.in/yaml/v3"
	"golang.org/x/sys/unix"
)

// Edit changes a token file as a whole: readers see the old one or the new one. Two
// edits at a time take turns. A file that is not there is made, for its owner alone.
func Edit(path string, change func(list []Token) ([]Token, error)) (err error) {
	f, err := lock(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }() // gives the lock back
	b, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	if err != nil {
		return fmt.Errorf("read the token file: %w", err)
	}
	old, err := ParseTokens(b)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	list, err := change(append([]Token(nil), old.list...))
	if err != nil {
		return err
	}
	out, err := encode(list)
	if err != nil {
		return err
	}
	if _, err := ParseTokens(out); err != nil {
		return err // what was asked for is not valid
	}
	return replace(path, f, out)
}

// encode writes a token file.
func encode(list []Token) ([]byte, error) {
	var out bytes.Buffer
	out.WriteString("# Tokens of ticktier-adapter, as hashes. ticktier-adapter tokens writes this file anew: keep remarks in comment.\n")
	e := yaml.NewEncoder(&out)
	e.SetIndent(2)
	if err := errors.Join(e.Encode(document{list}), e.Close()); err != nil {
		return nil, fmt.Errorf("write the token file: %w", err)
	}
	return out.Bytes(), nil
}

// lock opens the file and locks it, and again where another edit replaced it meanwhile.
func lock(path string) (*os.File, error) {
	for {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, fmt.Errorf("open the token file: %w", err)
		}
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
			return nil, errors.Join(fmt.Errorf("lock the token file: %w", err), f.Close())
		}
		mine, err1 := f.Stat()
		there, err2 := os.Stat(path)
		if err1 == nil && err2 == nil && os.SameFile(mine, there) {
			return f, nil
		}
		if err := f.Close(); err != nil || err1 != nil || err2 != nil && !errors.Is(err2, fs.ErrNotExist) {
			return nil, errors.Join(err, err1, err2)
		}
	}
}

// replace puts a new file in the place of old, with its mode and, where that is
// allowed, its owner: the adapter may run as another user.
func replace(path string, old *os.File, b []byte) (err error) {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	info, err := old.Stat()
	if err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("write the token file: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(tmp.Name()))
		}
	}()
	_, err = tmp.Write(b)
	err = errors.Join(err, tmp.Chmod(info.Mode().Perm()))
	var stat unix.Stat_t
	if e := unix.Fstat(int(old.Fd()), &stat); e == nil {
		_ = tmp.Chown(int(stat.Uid), int(stat.Gid)) // root alone may
	}
	if err = errors.Join(err, tmp.Sync(), tmp.Close()); err != nil {
		return fmt.Errorf("write the token file: %w", err)
	}
	if err = os.Rename(tmp.Name(), path); err != nil {
		return fmt.Errorf("write the token file: %w", err)
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return nil //nolint:nilerr // the file is in place
	}
	return errors.Join(dir.Sync(), dir.Close())
}
