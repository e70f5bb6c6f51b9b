// Package await has a test wait for a state instead of a time.
//
// A moment guessed in milliseconds is right on one machine and wrong on a busy one. What these functions wait for comes
// early on a fast machine and late on a slow one; they give up only when the test binary's own deadline (go test -timeout)
// is near, and then say what they waited for. A test of this package holds the rule that other tests guess no moments.
package await
