// Package bench measures how fast a model runs.
//
// [Run] loads a model within one set of budgets, times prompts and generations at the
// depths asked for, and says beside each speed what it took: bytes by lane, CPU, heat,
// energy. Whatever would take too long is made smaller, and a note says so. The JSON of a
// [Result] is documented in docs/bench.md. Unstable for embedders.
package bench
