// Package testdata finds the test data that lives outside the project.
//
// It is a folder named by LEAT_TESTDATA (relative to the module's root; default
// ../shared/testdata), with a folder "demo" beside it. Where it is absent a test is
// skipped with the reason, or fails if LEAT_REQUIRE_TESTDATA=1. The go tool leaves
// folders of this name out of "./...", so build.sh names this one.
package testdata
