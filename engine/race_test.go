//go:build race

package engine_test

const raceOn = true // sync.Pool then forgets on purpose, so that allocations cannot be counted
