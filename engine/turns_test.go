package engine_test

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

// Tests that try many models in many ways take their time from what they compute, not from what they find: ./build.sh test has
// each of them try one way or model of LEAT_ENGINE_PARTS, by turns, and nightly all.
var (
	engineParts = partsAsked(os.Getenv("LEAT_ENGINE_PARTS"))
	engineTurn  = rand.IntN(engineParts)
)

func partsAsked(env string) int {
	if env == "" {
		return 1
	}
	n, err := strconv.Atoi(env)
	if err != nil || n < 1 {
		panic("LEAT_ENGINE_PARTS: found " + strconv.Quote(env) + ", want a whole number from 1 on")
	}
	return n
}

// inTurn reports whether the i-th of many alike cases is tried in this run.
func inTurn(i int) bool { return (i+engineTurn)%engineParts == 0 }

// takes reports whether a model tries the i-th way: each model tries a third of them, of which it takes those that are in turn, or
// all with -combinations; for the race detector the same third will do.
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
	return i%3 == turn%3 && inTurn(turn/3+i/3)
}

// By turns every way is tried, by some model.
func TestTurns(t *testing.T) {
	if *combinations || testing.Short() {
		t.Skip("all of them are in turn, or the same third")
	}
	defer func(parts, turn int) { engineParts, engineTurn = parts, turn }(engineParts, engineTurn)
	engineParts = 4
	const ways = 30
	var whole [ways]bool
	for engineTurn = range engineParts {
		tried := 0
		for i := range ways {
			if (golden{name: "leat-demo-q4_k_m"}).takes(i) {
				tried++
			}
			for _, name := range []string{"leat-demo-q4_k_m", "qwen2-tiny-q8_0", "llama-tiny-bf16", "gpt-oss-nano", "qwen3moe-nano"} {
				whole[i] = whole[i] || golden{name: name}.takes(i)
			}
		}
		if tried < ways/3/engineParts || tried > ways/3/engineParts+1 {
			t.Errorf("turn %d: one model tries %d of %d ways", engineTurn, tried, ways)
		}
	}
	for i, ok := range whole {
		if !ok {
			t.Errorf("no turn has a model try way %d", i)
		}
	}
}
