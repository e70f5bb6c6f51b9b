// Package limit slows a flow of bytes down to a rate.
//
// It makes a fast machine's link and disk as slow as another's, to try what would happen
// there.
package limit
