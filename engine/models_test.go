package engine_test

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"leat/engine"
	"leat/gguf"
	"leat/internal/arch"
)

// writeModels has the tests that hold models against references write what they find into docs/models.md:
//
//	go test ./engine -run 'TestTransformers|TestGoldens$' -models
var writeModels = flag.Bool("models", false, "write the table of docs/models.md; run all of TestTransformers, TestTransformersHalves and TestGoldens with it")

// peopleSay is what the models of each architecture are called by those who bring them.
var peopleSay = map[string]string{
	"afmoe": "Arcee Trinity", "apertus": "Apertus", "arcee": "Arcee AFM", "bert": "BERT, XLM-RoBERTa, BGE, E5, MiniLM", "bloom": "BLOOM", "cohere2": "Command R7B, Command A",
	"command-r": "Command R, R+, Aya 23", "deepseek2": "DeepSeek V2, V3, R1, Kimi K2, GLM-4.7-Flash", "deepseek32": "DeepSeek V3.2", "dots1": "dots.llm1", "ernie4_5": "ERNIE 4.5", "ernie4_5-moe": "ERNIE 4.5, mixtures",
	"exaone-moe": "K-EXAONE", "exaone4": "EXAONE 4", "falcon": "Falcon", "falcon-h1": "Falcon-H1", "gemma": "Gemma", "gemma-embedding": "EmbeddingGemma", "gemma2": "Gemma 2", "gemma3": "Gemma 3",
	"gemma4": "Gemma 4, dense, mixtures and E2B, E4B", "glm-dsa": "GLM-5", "glm4": "GLM-4, dense", "glm4moe": "GLM-4.5, 4.6, 4.7", "gpt-oss": "GPT-OSS", "gpt2": "GPT-2", "gptneox": "GPT-NeoX, Pythia",
	"granite": "Granite 3 and 4, dense", "granitehybrid": "Granite 4, hybrid", "granitemoe": "Granite 3, mixtures", "hunyuan-dense": "Hunyuan, dense", "hunyuan-moe": "Hunyuan A13B", "jais2": "Jais 2", "jamba": "Jamba",
	"kimi-linear": "Kimi Linear", "lfm2": "LFM2", "lfm2moe": "LFM2, mixtures", "llama": "Llama 1 to 3, Mistral, Mixtral, Yi, TinyLlama and many more", "llama4": "Llama 4, text", "mamba": "Mamba, Falcon Mamba", "mamba2": "Mamba 2, Codestral Mamba",
	"mimo2": "MiMo-V2", "minicpm3": "MiniCPM 3", "minimax-m2": "MiniMax-M2, M2.5", "mistral": "Mistral, as some converters write it", "mistral3": "Ministral 3, Devstral 2", "modern-bert": "ModernBERT", "nemotron": "Nemotron 4, Minitron",
	"nemotron_h": "Nemotron-H, Nemotron Nano 2", "nemotron_h_moe": "Nemotron 3", "olmo": "OLMo", "olmo2": "OLMo 2 and 3", "olmoe": "OLMoE", "phi2": "Phi-1.5, Phi-2", "phi3": "Phi-3, 3.5, 4, 4-mini", "phimoe": "Phi-3.5-MoE",
	"qwen2": "Qwen 2, 2.5, QwQ", "qwen2moe": "Qwen 1.5 and 2, mixtures", "qwen2vl": "Qwen2-VL, Qwen2.5-VL, text", "qwen3": "Qwen 3, dense", "qwen35": "Qwen 3.5, dense", "qwen35moe": "Qwen 3.5, mixtures", "qwen3moe": "Qwen 3, mixtures",
	"qwen3next": "Qwen3-Next, Qwen3-Coder-Next", "qwen3vl": "Qwen3-VL, text", "qwen3vlmoe": "Qwen3-VL, mixtures, text", "seed_oss": "Seed-OSS", "smollm3": "SmolLM 3", "stablelm": "StableLM 2", "starcoder": "StarCoder", "starcoder2": "StarCoder 2",
	"step35": "Step-3.5",
}

// held are the results of this run: the worst of all models of an architecture with the same types of weights.
var held struct {
	sync.Mutex
	device string
	rows   map[heldKey]*heldRow
}

type heldKey struct {
	arch, weights string
	by            string // whose logits these are
}

type heldRow struct {
	models          map[string]bool
	float32, halves float64
}

// keepResult notes how far a model's worst row is from its reference, with a KV cache of type kv.
func keepResult(t *testing.T, m *engine.Model, path, name, by, kv string, e float64) {
	t.Helper()
	if !*writeModels {
		return
	}
	weights := weightsOf(t, path)
	held.Lock()
	defer held.Unlock()
	held.device = m.DeviceName()
	if held.rows == nil {
		held.rows = map[heldKey]*heldRow{}
	}
	key := heldKey{engine.DetailsOf(m).Hyper.Architecture, weights, by}
	row := held.rows[key]
	if row == nil {
		row = &heldRow{models: map[string]bool{}}
		held.rows[key] = row
	}
	row.models[name] = true
	switch kv {
	case "f32":
		row.float32 = max(row.float32, e)
	case "f16":
		row.halves = max(row.halves, e)
	}
}

// weightsOf names the types of a file's matrices.
func weightsOf(t *testing.T, path string) string {
	t.Helper()
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	bytes := map[string]int64{}
	for i := range f.Tensors {
		if x := &f.Tensors[i]; len(x.Shape) > 1 {
			bytes[x.Type.String()] += x.Bytes
		}
	}
	types := slices.SortedFunc(maps.Keys(bytes), func(a, b string) int { return cmp.Or(cmp.Compare(bytes[b], bytes[a]), strings.Compare(a, b)) })
	if len(types) > 4 {
		return fmt.Sprintf("%d types", len(types))
	}
	return strings.Join(types, ", ")
}

// The table stands between these lines.
const (
	tableBegins = "<!-- models: begin, written by go test ./engine -models -->"
	tableEnds   = "<!-- models: end -->"
)

// modelsPage is where the table stands, from the package's folder.
var modelsPage = filepath.Join("..", "docs", "models.md")

// writeTable replaces the page's table. TestMain calls it after the tests.
func writeTable() error {
	if len(held.rows) == 0 {
		return errors.New("-models: no test held a model against its reference")
	}
	text, err := os.ReadFile(modelsPage)
	if err != nil {
		return err
	}
	before, rest, ok := strings.Cut(string(text), tableBegins)
	_, after, closed := strings.Cut(rest, tableEnds)
	if !ok || !closed {
		return fmt.Errorf("%s: no table between %q and %q", modelsPage, tableBegins, tableEnds)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\n\nOn %s:\n\n| architecture | models | weights | tried | held against | float32 | F16 cache |\n|---|---|---|---|---|---|---|\n", held.device)
	keys := slices.SortedFunc(maps.Keys(held.rows), func(a, b heldKey) int {
		return cmp.Or(strings.Compare(a.arch, b.arch), strings.Compare(a.weights, b.weights), strings.Compare(a.by, b.by))
	})
	for i, k := range keys {
		name, say := "`"+k.arch+"`", peopleSay[k.arch]
		if i > 0 && keys[i-1].arch == k.arch {
			name, say = "", ""
		}
		r := held.rows[k]
		halves := "—"
		if r.halves > 0 {
			halves = fmt.Sprintf("%.1e", r.halves)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %d | %s | %.1e | %s |\n", name, say, k.weights, len(r.models), k.by, r.float32, halves)
	}
	b.WriteString("\n")
	return os.WriteFile(modelsPage, []byte(before+tableBegins+b.String()+tableEnds+after), 0o644)
}

// TestModelsPage: docs/models.md has a row of each architecture that leat runs, by the names that people know, and of none other.
func TestModelsPage(t *testing.T) {
	text, err := os.ReadFile(modelsPage)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), tableBegins)
	table, _, ok := strings.Cut(rest, tableEnds)
	if !ok {
		t.Fatalf("no table between %q and %q", tableBegins, tableEnds)
	}
	rows := map[string]string{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\| ([^|]*) \\|").FindAllStringSubmatch(table, -1) {
		rows[m[1]] = m[2]
	}
	for _, name := range arch.Supported() {
		switch found, ok := rows[name]; {
		case peopleSay[name] == "":
			t.Errorf("%s: peopleSay lacks it", name)
		case !ok && !strings.Contains(string(text), "`"+name+"`"):
			t.Errorf("%s is not on the page: go test ./engine -run 'TestTransformers|TestGoldens$' -models", name)
		case ok && found != peopleSay[name]:
			t.Errorf("%s: found %q on the page, wanted %q", name, found, peopleSay[name])
		}
		delete(rows, name)
	}
	for name := range rows {
		t.Errorf("%s is on the page, and leat does not run it", name)
	}
}
