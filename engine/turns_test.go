package engine_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"leat/tools/testdata"
)

// Tests that try many models in many ways take minutes. ./build.sh test has each of them try one of LEAT_ENGINE_PARTS models, beginning with a
// random one, so that several runs see all; nightly tries all.
var (
	engineParts = testdata.Parts("LEAT_ENGINE_PARTS")
	engineTurn  = rand.IntN(engineParts)
)

// inTurn reports whether the i-th of many alike cases is tried in this run.
func inTurn(i int) bool { return oneIn(engineParts, i) }

// oneIn is inTurn for few cases that take long: one in n of them is tried, or all where LEAT_ENGINE_PARTS is not set. There must be n cases or more.
func oneIn(n, i int) bool { return (i+engineTurn)%min(n, engineParts) == 0 }

// goldensInTurn are those of the goldens that a test is for and that are tried in this run.
func goldensInTurn(t *testing.T, wanted func(g golden) bool) (list []golden) {
	t.Helper()
	n := 0
	for _, g := range goldens(t) {
		if !wanted(g) {
			continue
		}
		if n++; inTurn(n) {
			list = append(list, g)
		}
	}
	return list
}

// takes reports whether a model tries the i-th way. Each tries a third of them, which its name decides, or all with -combinations; under the race
// detector (-short) all models try the same third.
func (g golden) takes(i int) bool {
	switch {
	case *combinations:
		return true
	case testing.Short():
		return i%3 == 0
	}
	turn := 0
	for _, b := range []byte(g.name) {
		turn += int(b)
	}
	return i%3 == turn%3
}

// With each beginning other models are tried, and with all of them every model once.
func TestTurns(t *testing.T) {
	defer func(parts, turn int) { engineParts, engineTurn = parts, turn }(engineParts, engineTurn)
	engineParts = 4
	const models = 30
	tried := [models]int{}
	for engineTurn = range engineParts {
		for i := range models {
			if inTurn(i) {
				tried[i]++
			}
		}
	}
	for i, n := range tried {
		if n != 1 {
			t.Errorf("model %d is in turn %d times", i, n)
		}
	}
	for engineParts = 1; engineParts < 10; engineParts++ {
		for n := 1; n <= 3; n++ {
			tried := make([]bool, n)
			for engineTurn = range engineParts {
				some := false
				for i := range n {
					in := oneIn(n, i)
					tried[i], some = tried[i] || in, some || in
				}
				if !some {
					t.Errorf("%d parts, turn %d: none of %d cases is tried", engineParts, engineTurn, n)
				}
			}
			if slices.Contains(tried, false) {
				t.Errorf("%d parts: of %d cases %v are tried in some turn", engineParts, n, tried)
			}
		}
	}
}
