// Package cache keeps small files between runs, each bound to a key that says what it holds for.
//
// A file is read back only whole and under its own key: another device's or driver's, a truncated or altered one counts
// as absent. Writing replaces it whole, under a lock, so that two processes lose nothing of each other's.
package cache
