package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"leat/tools/await"
)

// atTerminal is the program at a terminal of its own, with a person who waits for what
// it shows.
type atTerminal struct {
	t      *testing.T
	cmd    *exec.Cmd
	master *os.File
	fd     int           // master's
	before *unix.Termios // the terminal's modes before the program began

	mu    sync.Mutex
	more  sync.Cond
	shown string
	seen  int // bytes of shown that expect has passed
	ended bool
}

// talkAt starts a conversation with scripted answers; home is its home folder.
func talkAt(t *testing.T, home string, columns int, args ...string) *atTerminal {
	t.Helper()
	return programAt(t, "leat-talk", home, columns, args...)
}

// hearHangUps has a program that a test starts hear of a terminal that closes where the tests run under nohup: a process starts with those
// signals ignored that its parent ignores, but not with those that its parent catches.
var hearHangUps = sync.OnceFunc(func() {
	if signal.Ignored(syscall.SIGHUP) {
		signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	}
})

// programAt starts a program of TestMain's.
func programAt(t *testing.T, program, home string, columns int, args ...string) *atTerminal {
	t.Helper()
	hearHangUps()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), program) // by this name the test is that program
	if err := os.Symlink(self, name); err != nil {
		t.Fatal(err)
	}
	p := &atTerminal{t: t, cmd: exec.Command(name, args...)}
	p.more.L = &p.mu
	p.cmd.Env = []string{"HOME=" + home, "XDG_STATE_HOME=" + filepath.Join(home, "state"), "TERM=xterm", "GOTRACEBACK=none", mesaCache}
	slave := p.open(columns)
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = slave, slave, slave
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	slave.Close()
	go p.read()
	t.Cleanup(func() {
		p.cmd.Process.Kill()
		p.cmd.Wait()
		p.master.Close()
	})
	return p
}

func (p *atTerminal) open(columns int) *os.File {
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		p.t.Skipf("no terminal to be had: %v", err)
	}
	p.fd, p.master = fd, os.NewFile(uintptr(fd), "/dev/ptmx") // Fd would make Close wait for read
	p.resize(columns)
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		p.t.Fatal(err)
	}
	if p.before, err = unix.IoctlGetTermios(fd, unix.TCGETS); err != nil {
		p.t.Fatal(err)
	}
	return p.slave(p.t)
}

// slave opens the terminal itself.
func (p *atTerminal) slave(t *testing.T) *os.File {
	t.Helper()
	n, err := unix.IoctlGetInt(p.fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func (p *atTerminal) resize(columns int) {
	if err := unix.IoctlSetWinsize(p.fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: uint16(columns)}); err != nil {
		p.t.Fatal(err)
	}
}

func (p *atTerminal) read() {
	var buf [4096]byte
	for {
		n, err := p.master.Read(buf[:])
		p.mu.Lock()
		p.shown += string(buf[:n])
		p.ended = p.ended || err != nil
		p.more.Broadcast()
		p.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// text is what the terminal shows so far.
func (p *atTerminal) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.shown
}

// all is what the terminal shows once nothing has it open any more.
func (p *atTerminal) all() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	for !p.ended {
		p.more.Wait()
	}
	return p.shown
}

// enter types keys; "\r" is Enter.
func (p *atTerminal) enter(keys string) {
	p.t.Helper()
	if _, err := p.master.WriteString(keys); err != nil {
		p.t.Fatal(err)
	}
}

// expect waits for text after what was expected before, and returns what came until it.
func (p *atTerminal) expect(text string) string {
	p.t.Helper()
	defer context.AfterFunc(await.Context(p.t), func() {
		p.mu.Lock()
		p.ended = true
		p.more.Broadcast()
		p.mu.Unlock()
	})()
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		if i := strings.Index(p.shown[p.seen:], text); i >= 0 {
			before := p.shown[p.seen : p.seen+i]
			p.seen += i + len(text)
			return before
		}
		if p.ended {
			p.t.Fatalf("waited for %q in vain; after what was expected before, the terminal shows %q", text, p.shown[p.seen:])
		}
		p.more.Wait()
	}
}

// say types a line at the prompt and waits for its answer.
func (p *atTerminal) say(line string) {
	p.t.Helper()
	p.expect(promptFirst)
	p.enter(line + "\r")
	p.expect(fmt.Sprintf("you said: %q", line))
}

// hangUp closes the terminal's window.
func (p *atTerminal) hangUp() { p.master.Close() }

// wait waits for the program's end.
func (p *atTerminal) wait() *os.ProcessState {
	p.cmd.Wait()
	return p.cmd.ProcessState
}

// pipe is a file whose reader waits for a writer.
func pipe(t *testing.T) string {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func release(t *testing.T, pipe string) {
	if err := os.WriteFile(pipe, nil, 0); err != nil {
		t.Fatal(err)
	}
}
