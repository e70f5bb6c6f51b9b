// Command golden writes the goldens of engine/testdata: small models of package tiny, and the logits that package truth has
// computed for them.
package main
