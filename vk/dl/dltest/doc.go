// Package dltest builds libraries for tests to open.
package dltest
