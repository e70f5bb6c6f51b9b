//go:build !race

package raw

const raceDetector = false
