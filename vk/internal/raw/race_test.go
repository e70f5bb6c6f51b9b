//go:build race

package raw

// raceDetector: sync.Pool drops entries at random under it, so that calls allocate.
const raceDetector = true
