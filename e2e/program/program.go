package program

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// Config says what to start and how to know that it is up.
type Config struct {
	// Name is used in errors. Required.
	Name string
	// Path is the executable.
	Path string
	Args []string
	// Env is added to the environment of the parent.
	Env []string
	// Dir is the working directory; empty means the parent's.
	Dir string
	// Log receives a copy of what the program writes to either output. May be
	// nil. It is written to by one goroutine at a time.
	Log io.Writer
	// Listening finds the address in a line of the log: its first group is the
	// address. Nil means ListeningLine.
	Listening *regexp.Regexp
}

// ListeningLine matches the line with which both of our programs say where they
// listen, in either log format.
var ListeningLine = regexp.MustCompile(`msg"?[=:]"?listening"?.*\baddr"?[=:]"?([^\s",}]+)`)

// Program is a running child process. All methods are safe for concurrent use.
type Program struct {
	name   string
	cmd    *exec.Cmd
	log    *logBuffer
	exited chan struct{} // closed when the process was waited for

	// Set before exited is closed.
	err error
}

// Start starts the program and returns without waiting for it to be up.
func Start(c Config) (*Program, error) {
	pattern := c.Listening
	if pattern == nil {
		pattern = ListeningLine
	}
	p := &Program{
		name:   c.Name,
		log:    newLogBuffer(c.Log, pattern),
		exited: make(chan struct{}),
	}
	p.cmd = exec.Command(c.Path, c.Args...)
	p.cmd.Dir = c.Dir
	p.cmd.Env = append(os.Environ(), c.Env...)
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	// A group of its own keeps the terminal's Ctrl-C from the child: its parent
	// decides the order in which things stop.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	// Should a grandchild hold the output open, Wait gives up on reading it.
	p.cmd.WaitDelay = 5 * time.Second

	started := make(chan error)
	go p.run(started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", c.Name, err)
	}
	return p, nil
}

// run starts the process and waits for it on one thread: Linux sends the parent
// death signal when the thread that forked ends, not when the process does.
func (p *Program) run(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := p.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	p.err = p.cmd.Wait()
	p.log.close()
	close(p.exited)
}

// Name returns the name that was given at the start.
func (p *Program) Name() string { return p.name }

// PID returns the process id.
func (p *Program) PID() int { return p.cmd.Process.Pid }

// Log returns what the program has written so far.
func (p *Program) Log() string { return p.log.String() }

// Exited is closed when the process has ended.
func (p *Program) Exited() <-chan struct{} { return p.exited }

// ExitErr returns how the process ended: nil for exit status 0. It may be called
// once Exited is closed.
func (p *Program) ExitErr() error { return p.err }

// ExitCode returns the exit status, or -1 when a signal ended the process. It may
// be called once Exited is closed.
func (p *Program) ExitCode() int { return p.cmd.ProcessState.ExitCode() }

// EndedBy says whether sig ended the process. It may be called once Exited is
// closed.
func (p *Program) EndedBy(sig syscall.Signal) bool {
	ws, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	return ok && ws.Signaled() && ws.Signal() == sig
}

// Addr waits until the program has said where it listens and returns that address
// as one to dial: a wildcard host becomes 127.0.0.1.
func (p *Program) Addr(ctx context.Context) (string, error) {
	select {
	case <-p.log.found:
		return dialable(p.log.addr), nil
	case <-p.exited:
		// The line may have come just before the end.
		select {
		case <-p.log.found:
			return dialable(p.log.addr), nil
		default:
		}
		return "", fmt.Errorf("%s stopped before it listened: %w", p.name, p.endErr())
	case <-ctx.Done():
		return "", fmt.Errorf("wait for %s to listen: %w", p.name, ctx.Err())
	}
}

func (p *Program) endErr() error {
	if p.err == nil {
		return errors.New("exit status 0")
	}
	return p.err
}

// Signal sends sig to the process. A process that has ended is no error.
func (p *Program) Signal(sig os.Signal) error {
	err := p.cmd.Process.Signal(sig)
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

// Stop asks the process to end with SIGTERM, waits, and after the grace kills it,
// which is an error. Otherwise it returns how the process ended.
func (p *Program) Stop(grace time.Duration) error {
	if err := p.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("stop %s: %w", p.name, err)
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.exited:
		return p.err
	case <-timer.C:
		p.Kill()
		return fmt.Errorf("stop %s: still running %v after SIGTERM, killed", p.name, grace)
	}
}

// Kill ends the process with SIGKILL and waits for its end.
func (p *Program) Kill() {
	_ = p.Signal(syscall.SIGKILL)
	<-p.exited
}

func dialable(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return addr
	}
	if ip := net.ParseIP(host); host == "" || (ip != nil && ip.IsUnspecified()) {
		return net.JoinHostPort("127.0.0.1", port)
	}
	return addr
}

// logBuffer keeps what a program writes and looks for the line that says where it
// listens.
type logBuffer struct {
	pattern *regexp.Regexp
	found   chan struct{} // closed when addr is set
	copy    io.Writer

	mu   sync.Mutex
	all  []byte
	line int // start of the line that is not complete yet, in all
	addr string
}

func newLogBuffer(copy io.Writer, pattern *regexp.Regexp) *logBuffer {
	return &logBuffer{pattern: pattern, copy: copy, found: make(chan struct{})}
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.copy != nil {
		_, _ = b.copy.Write(p)
	}
	b.all = append(b.all, p...)
	b.scan(false)
	return len(p), nil
}

// close looks at a last line that has no line end.
func (b *logBuffer) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.scan(true)
}

func (b *logBuffer) scan(last bool) {
	for {
		end := b.line
		for end < len(b.all) && b.all[end] != '\n' {
			end++
		}
		if end == len(b.all) && !last || b.line >= len(b.all) {
			return
		}
		if b.addr == "" {
			if m := b.pattern.FindSubmatch(b.all[b.line:end]); m != nil {
				b.addr = string(m[1])
				close(b.found)
			}
		}
		b.line = end + 1
	}
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return string(b.all)
}
