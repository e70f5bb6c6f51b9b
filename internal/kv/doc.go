// Package kv keeps the keys and values of every session's past positions in pages
// of one pool in VRAM.
package kv
