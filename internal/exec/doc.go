// Package exec records and submits one step: a forward pass over a batch of rows,
// each a token at a position of some session.
//
// A step walks the plan's units in order. For each it asks package weights where the
// unit is, waits on the device for its ticket, records the unit's ops and submits
// them; after a streamed unit it tells weights when the memory may be reused. A
// row's logits do not depend on the other rows of its step (design §4).
package exec
