// Command benchtables writes the tables of docs/benchmarks.md from the results in docs/results.
//
//	go run ./tools/benchtables          rewrite the tables
//	go run ./tools/benchtables -check   fail if the page differs from what the results say
//
// Each folder docs/results/DEVICE holds the results of one device: files that "leat bench MODEL --json" printed, and at most one
// speed-ups.json. The folder's table stands between the lines
//
//	<!-- benchtables: begin DEVICE -->
//	<!-- benchtables: end DEVICE -->
//
// and that of its speed-ups.json between the same lines with "DEVICE speed-ups" in place of DEVICE. If several files have a row of
// the same model, budgets, test and flags, the newest one is shown.
package main
