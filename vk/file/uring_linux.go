package file

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The kernel's structures, as io_uring(7) and io_uring_setup(2) have them.
type (
	sqe struct {
		opcode, flags         uint8
		ioprio                uint16
		fd                    int32
		off, addr             uint64
		len, rwFlags          uint32
		userData              uint64
		bufIndex, personality uint16
		spliceFD              int32
		_                     [2]uint64
	}
	cqe struct {
		userData uint64
		res      int32
		flags    uint32
	}
	sqOffsets struct {
		head, tail, mask, entries, flags, dropped, array, _ uint32
		_                                                   uint64
	}
	cqOffsets struct {
		head, tail, mask, entries, overflow, cqes, flags, _ uint32
		_                                                   uint64
	}
	uringParams struct {
		sqEntries, cqEntries, flags, cpu, idle, features, fd uint32
		_                                                    [3]uint32
		sq                                                   sqOffsets
		cq                                                   cqOffsets
	}
)

const (
	opNop  = 0
	opRead = 22

	offRing = 0
	offSQEs = 0x10000000

	featSingleMmap = 1 << 0
	featRWCurPos   = 1 << 3 // came with IORING_OP_READ, Linux 5.6
	enterGetEvents = 1 << 0
)

// uring is one io_uring, mapped.
type uring struct {
	fd         int
	ring, sqes []byte

	mu             sync.Mutex // of the submission side
	sqTail, sqMask *uint32
	sqArray        []uint32
	entries        []sqe

	cqHead, cqTail, cqMask *uint32 // of one goroutine
	answers                []cqe
}

func openUring(entries uint32) (*uring, error) {
	var p uringParams
	fd, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, uintptr(entries), uintptr(unsafe.Pointer(&p)), 0)
	if errno != 0 {
		return nil, fmt.Errorf("io_uring_setup: %w", errno)
	}
	u := &uring{fd: int(fd)}
	if p.features&featSingleMmap == 0 || p.features&featRWCurPos == 0 {
		u.close()
		return nil, fmt.Errorf("io_uring of a kernel before 5.6: %w", errors.ErrUnsupported)
	}
	size := max(p.sq.array+4*p.sqEntries, p.cq.cqes+uint32(unsafe.Sizeof(cqe{}))*p.cqEntries)
	var err error
	const prot, flags = unix.PROT_READ | unix.PROT_WRITE, unix.MAP_SHARED | unix.MAP_POPULATE
	if u.ring, err = unix.Mmap(u.fd, offRing, int(size), prot, flags); err == nil {
		u.sqes, err = unix.Mmap(u.fd, offSQEs, int(p.sqEntries)*int(unsafe.Sizeof(sqe{})), prot, flags)
	}
	if err != nil {
		u.close()
		return nil, fmt.Errorf("map an io_uring: %w", err)
	}
	word := func(off uint32) *uint32 { return (*uint32)(unsafe.Pointer(&u.ring[off])) }
	u.sqTail, u.sqMask = word(p.sq.tail), word(p.sq.mask)
	u.sqArray = unsafe.Slice(word(p.sq.array), p.sqEntries)
	u.entries = unsafe.Slice((*sqe)(unsafe.Pointer(&u.sqes[0])), p.sqEntries)
	u.cqHead, u.cqTail, u.cqMask = word(p.cq.head), word(p.cq.tail), word(p.cq.mask)
	u.answers = unsafe.Slice((*cqe)(unsafe.Pointer(&u.ring[p.cq.cqes])), p.cqEntries)
	return u, nil
}

// submit hands one entry to the kernel. There is always room: each is taken before submit
// returns.
func (u *uring) submit(e sqe) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	tail := atomic.LoadUint32(u.sqTail)
	i := tail & *u.sqMask
	u.entries[i], u.sqArray[i] = e, i
	atomic.StoreUint32(u.sqTail, tail+1)
	for {
		n, _, errno := unix.Syscall6(unix.SYS_IO_URING_ENTER, uintptr(u.fd), 1, 0, 0, 0, 0)
		switch {
		case errno == unix.EINTR, errno == unix.EAGAIN, errno == unix.EBUSY, errno == 0 && n == 0:
			continue
		case errno != 0:
			atomic.StoreUint32(u.sqTail, tail) // not taken
			return fmt.Errorf("io_uring_enter: %w", errno)
		}
		return nil
	}
}

// next waits for an answer.
func (u *uring) next() (userData uint64, res int32, err error) {
	for {
		head := atomic.LoadUint32(u.cqHead)
		if head != atomic.LoadUint32(u.cqTail) {
			// The submitter's lock lets us see what it wrote before: of that Go has no other
			// witness than the kernel.
			u.mu.Lock()
			a := u.answers[head&*u.cqMask]
			atomic.StoreUint32(u.cqHead, head+1)
			u.mu.Unlock()
			return a.userData, a.res, nil
		}
		_, _, errno := unix.Syscall6(unix.SYS_IO_URING_ENTER, uintptr(u.fd), 0, 1, enterGetEvents, 0, 0)
		if errno != 0 && errno != unix.EINTR && errno != unix.EAGAIN && errno != unix.EBUSY {
			return 0, 0, fmt.Errorf("io_uring_enter: %w", errno)
		}
	}
}

func (u *uring) close() {
	for _, m := range [][]byte{u.ring, u.sqes} {
		if m != nil {
			_ = unix.Munmap(m)
		}
	}
	_ = unix.Close(u.fd)
}
