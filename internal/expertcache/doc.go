// Package expertcache decides which experts of a mixture stay in the slots of a tier.
//
// A [Cache] knows what is where and what may not be evicted; a [Policy] chooses whom to evict; [Replay]
// runs recorded [Routing] through both, and [Optimum] says what no policy can beat.
//
// Unstable: importable by our own commands and tools, no promise to others.
package expertcache
