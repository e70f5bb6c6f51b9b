//go:build linux || darwin

package main

import (
	"io"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"

	"github.com/chzyer/readline"
	"golang.org/x/sys/unix"
)

// keyboard reads the terminal all the time, so that what is typed or pasted while there
// is no prompt waits for the next one. Meanwhile the terminal echoes nothing, and Ctrl-C
// is still a signal.
type keyboard struct {
	fd     int
	before *readline.State // of the terminal
	wake   [2]int          // a pipe: closing its end stops pump
	prompt atomic.Bool     // what is typed is for a prompt that is there
	cont   chan os.Signal

	mu     sync.Mutex
	more   sync.Cond
	filter pasteFilter
	early  []byte // ready, and typed before the answer in progress
	closed bool
	err    error
}

func openKeyboard() (*keyboard, error) {
	k := &keyboard{fd: int(os.Stdin.Fd())}
	k.more.L = &k.mu
	var err error
	if k.before, err = readline.GetState(k.fd); err != nil {
		return nil, err
	}
	if err := unix.Pipe(k.wake[:]); err != nil {
		return nil, err
	}
	k.cont = make(chan os.Signal, 1)
	signal.Notify(k.cont, unix.SIGCONT)
	k.mode()
	go k.pump()
	go func() {
		for range k.cont {
			k.mode() // a shell had the terminal meanwhile
		}
	}()
	return k, nil
}

// configure has the line editor read from here.
func (k *keyboard) configure(c *readline.Config) {
	c.Stdin, c.Listener = k, k
	c.FuncMakeRaw = k.mode
	c.FuncExitRaw = func() error {
		k.mu.Lock()
		defer k.mu.Unlock()
		if k.closed {
			return k.restore()
		}
		return k.quiet() // never less: pump would wait for a whole line
	}
	c.FuncFilterInputRune = func(key rune) (rune, bool) {
		if key == readline.CharCtrlZ {
			k.stop()
			return 0, false
		}
		return key, true
	}
}

// stop stops the process, as Ctrl-Z does elsewhere.
func (k *keyboard) stop() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.restore()
	unix.Kill(0, unix.SIGTSTP)
	k.mode()
}

// mode gives the terminal the mode it should have now.
func (k *keyboard) mode() error {
	if !k.prompt.Load() {
		return k.quiet()
	}
	_, err := readline.MakeRaw(k.fd)
	return err
}

// quiet has the terminal echo nothing and hold back nothing.
func (k *keyboard) quiet() error {
	t, err := unix.IoctlGetTermios(k.fd, getTermios)
	if err != nil {
		return err
	}
	t.Lflag |= unix.ISIG | unix.IEXTEN
	t.Lflag &^= unix.ECHO | unix.ECHONL | unix.ICANON
	t.Lflag |= unix.NOFLSH // Ctrl-C drops nothing that was typed
	t.Iflag &^= unix.ICRNL
	t.Cc[unix.VMIN], t.Cc[unix.VTIME] = 1, 0
	return unix.IoctlSetTermios(k.fd, setTermios, t)
}

// restore gives the terminal back as it was.
func (k *keyboard) restore() error { return readline.Restore(k.fd, k.before) }

// atPrompt tells whether what is typed from now on is for the prompt that is there.
func (k *keyboard) atPrompt(there bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return
	}
	k.prompt.Store(there)
	for k.err == nil && k.readable(0) {
		k.read() // it was typed before
	}
	f := &k.filter
	switch {
	case there && f.ahead:
		f.ready = append(k.early, joinAhead(string(f.ready))...)
		k.early = nil
	case !there && !f.ahead:
		k.early, f.ready = f.ready, nil
	}
	f.ahead = !there
	k.more.Broadcast()
}

// pump reads until Close. It reads only what is there, with the lock held, so that
// atPrompt can read the rest.
func (k *keyboard) pump() {
	defer unix.Close(k.wake[0])
	for k.readable(-1) {
		k.mu.Lock()
		if !k.closed && k.err == nil && k.readable(0) {
			k.read()
		}
		over := k.closed || k.err != nil
		k.mu.Unlock()
		if over {
			return
		}
	}
}

// readable waits for input where wait is -1. It is false after Close.
func (k *keyboard) readable(wait int) bool {
	for {
		var set unix.FdSet
		set.Set(k.fd)
		set.Set(k.wake[0])
		var until *unix.Timeval
		if wait == 0 {
			until = &unix.Timeval{}
		}
		_, err := unix.Select(max(k.fd, k.wake[0])+1, &set, nil, nil, until)
		if err == unix.EINTR {
			continue
		}
		return err == nil && set.IsSet(k.fd) && !set.IsSet(k.wake[0])
	}
}

func (k *keyboard) read() {
	var raw [1024]byte
	n, err := unix.Read(k.fd, raw[:])
	switch {
	case err == unix.EINTR || err == unix.EAGAIN:
		return
	case err != nil:
		k.err = os.NewSyscallError("read", err)
	case n == 0:
		k.err = io.EOF
	default:
		for _, c := range raw[:n] {
			k.filter.push(c)
		}
	}
	k.more.Broadcast()
}

// Read is the line editor's. It gets one line at most: what comes after waits here.
func (k *keyboard) Read(b []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for !k.closed && k.err == nil && (len(k.filter.ready) == 0 || k.filter.ahead) {
		k.more.Wait()
	}
	ready := k.filter.ready
	switch {
	case k.closed:
		return 0, io.EOF
	case len(ready) == 0:
		return 0, k.err
	}
	n := min(len(ready), len(b))
	for i, c := range ready[:n] {
		if c == '\r' || c == '\n' {
			n = i + 1
			break
		}
	}
	copy(b, ready[:n])
	k.filter.ready = ready[n:]
	return n, nil
}

// OnChange is called by the line editor after each key.
func (k *keyboard) OnChange(line []rune, pos int, key rune) ([]rune, int, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.filter.OnChange(line, pos, key)
}

// Close ends a Read in progress. What is typed after it is the shell's.
func (k *keyboard) Close() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.closed {
		k.closed = true
		signal.Stop(k.cont)
		close(k.cont)
		unix.Close(k.wake[1])
		k.more.Broadcast()
	}
	return nil
}
