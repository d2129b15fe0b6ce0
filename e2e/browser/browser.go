package browser

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// Browser is a running Chromium. It is safe for concurrent use.
type Browser struct {
	cmd     *exec.Cmd
	write   *os.File
	done    chan struct{} // closed once nothing more is read
	stderr  bytes.Buffer
	reading sync.WaitGroup

	mu      sync.Mutex
	next    int
	waiting map[int]chan answer
	pages   map[string]*Page // by session
}

// answer is what the browser says to one command.
type answer struct {
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Message string `json:"message"`
	} `json:"error"`
}

// message is anything the browser says.
type message struct {
	ID        int             `json:"id"`
	SessionID string          `json:"sessionId"`
	Method    string          `json:"method"`
	Params    json.RawMessage `json:"params"`
	answer
}

// errGone is the answer of a browser that has ended.
var errGone = errors.New("the browser has ended")

// Start starts the Chromium at path with its profile in dir, an empty directory.
// Whatever it may want to reach beyond the loopback addresses is not there.
func Start(path, dir string) (*Browser, error) {
	fromUs, toBrowser, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	fromBrowser, toUs, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	b := &Browser{write: toBrowser, done: make(chan struct{}), waiting: map[int]chan answer{}, pages: map[string]*Page{}}
	b.cmd = exec.Command(path,
		"--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-dev-shm-usage", "--hide-scrollbars",
		"--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync",
		"--disable-default-apps", "--disable-extensions", "--metrics-recording-only", "--no-pings",
		"--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
		"--user-data-dir="+dir, "--remote-debugging-pipe", "about:blank")
	b.cmd.ExtraFiles = []*os.File{fromUs, toUs} // its descriptors 3 and 4
	b.cmd.Stderr = &b.stderr
	b.cmd.WaitDelay = 5 * time.Second
	// The browser starts processes of its own; they go with it.
	b.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	err = b.cmd.Start()
	fromUs.Close() //nolint:errcheck // the browser's ends
	toUs.Close()   //nolint:errcheck
	if err != nil {
		toBrowser.Close()   //nolint:errcheck
		fromBrowser.Close() //nolint:errcheck
		return nil, fmt.Errorf("start the browser: %w", err)
	}
	b.reading.Go(func() { b.read(fromBrowser) })
	return b, nil
}

// Close ends the browser and all its processes.
func (b *Browser) Close() {
	_ = syscall.Kill(-b.cmd.Process.Pid, syscall.SIGKILL)
	b.write.Close() //nolint:errcheck // nobody reads it any more
	b.cmd.Wait()    //nolint:errcheck // it was killed
	b.reading.Wait()
}

// read hands out what the browser says until it ends.
func (b *Browser) read(r io.ReadCloser) {
	defer close(b.done)
	defer r.Close() //nolint:errcheck // only read
	in := bufio.NewReaderSize(r, 1<<20)
	for {
		text, err := in.ReadBytes(0)
		if err != nil {
			return
		}
		var m message
		if json.Unmarshal(text[:len(text)-1], &m) != nil {
			continue
		}
		b.mu.Lock()
		waiting, page := b.waiting[m.ID], b.pages[m.SessionID]
		delete(b.waiting, m.ID)
		b.mu.Unlock()
		switch {
		case m.ID != 0 && waiting != nil:
			waiting <- m.answer
		case m.ID == 0 && page != nil:
			page.event(m.Method, m.Params)
		}
	}
}

// call sends a command to a session, "" for the browser's own, and waits for the answer.
func (b *Browser) call(ctx context.Context, session, method string, params, result any) error {
	c := make(chan answer, 1)
	b.mu.Lock()
	b.next++
	id := b.next
	b.waiting[id] = c
	text, err := json.Marshal(struct {
		ID        int    `json:"id"`
		SessionID string `json:"sessionId,omitempty"`
		Method    string `json:"method"`
		Params    any    `json:"params,omitempty"`
	}{id, session, method, params})
	if err == nil {
		_, err = b.write.Write(append(text, 0))
	}
	b.mu.Unlock()
	if err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	select {
	case <-ctx.Done():
		return fmt.Errorf("%s: %w", method, ctx.Err())
	case <-b.done:
		return fmt.Errorf("%s: %w", method, errGone)
	case a := <-c:
		if a.Error != nil {
			return fmt.Errorf("%s: %s", method, a.Error.Message)
		}
		if result == nil {
			return nil
		}
		return json.Unmarshal(a.Result, result)
	}
}
