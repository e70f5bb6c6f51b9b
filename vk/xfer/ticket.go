package xfer

// MaxLanes is how many transfer queues an uploader uses at most.
const MaxLanes = 2

// Ticket says when bytes are there: once each lane's timeline has reached its value.
// The zero Ticket waits for nothing.
type Ticket [MaxLanes]uint64

// With is the ticket of what both t and o stand for.
func (t Ticket) With(o Ticket) Ticket {
	for i := range t {
		t[i] = max(t[i], o[i])
	}
	return t
}

// Covers reports whether waiting for t is waiting for o too.
func (t Ticket) Covers(o Ticket) bool { return t.With(o) == t }
