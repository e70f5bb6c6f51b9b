package plan

// Guess is how many experts of the next layer may come before it has chosen, as its router, run early, foresees: from RAM, and
// from disk.
type Guess struct{ Near, Far int }

// What a token waits for is the disk where a layer asks it for so many experts. Then one that the next layer will want in all
// likelihood is read while it has not chosen yet, and the disk stands idle.
const (
	fromDisk    = 0.25
	guessedThen = 1
	guessRight  = 0.95 // how often the router's first choice is, run a layer early
)

// guess chooses how many experts come early: as many as were asked for; 0: what the disk has time for; fewer: none.
func (x *Experts) guess(asked int) {
	switch {
	case asked > 0:
		x.Guess = Guess{asked, asked}
	case asked == 0 && x.fromDisk() >= fromDisk:
		x.Guess = Guess{0, guessedThen}
	}
}

// fromDisk is how many experts a layer asks the disk for, for a token, if all are as likely.
func (x *Experts) fromDisk() (n float64) {
	for i := range x.Classes {
		layers := x.Classes[i].Layers
		n += float64(x.Used) * (1 - x.hitRate(layers[0])) * x.diskShare() * float64(len(layers)) / float64(x.Layers)
	}
	return n
}

// foreseen is the part of what a token has a layer read that comes before the layer has chosen.
func (x *Experts) foreseen(f Found) float64 {
	n := f.Needed * float64(x.Count) * (1 - f.HitRate) * f.DiskShare
	if x.Guess.Far == 0 || n <= 0 {
		return 0
	}
	return min(1, guessRight*float64(x.Guess.Far)/n)
}
