// Suites says which tests `./build.sh test` runs under the validation layers and under the race detector.
//
// Both cost several times what a test costs by itself, so they are for what they alone find. A new test is in both until a list
// here names it, with the reason; a test of this package fails when a package is in no list, or a list names a test that is gone.
// `./build.sh nightly` runs everything under both.
//
//	go run ./tools/suites layers   the arguments of go test, a line for each run of it
//	go run ./tools/suites race
package main
