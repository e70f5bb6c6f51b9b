package main

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/pflag"

	"leat/engine"
	"leat/vk"
)

// modelFlags are common to all commands that load a model.
type modelFlags struct {
	device     string
	vram, ram  sizeFlag
	ctx, chunk int
	kvType     string
	disable    []string
	enable     []string
	oneQueue   bool
	validate   bool
	pace       string
	targetTemp int
	experts    string
	routing    string // file
	results    *results
	traced     bool // the trace of routing has begun
}

func (f *modelFlags) register(fs *pflag.FlagSet) {
	fs.StringVar(&f.device, "device", "", "GPU by index, name or UUID as \"leat devices\" prints them (default: the one with most VRAM)")
	fs.Var(&f.vram, "vram", "VRAM to use at most, as 6GiB (default: what is free, less a reserve)")
	fs.Var(&f.ram, "ram", "RAM to use at most for weights that don't fit into VRAM (default: what is available, less a reserve)")
	fs.IntVarP(&f.ctx, "ctx", "c", 0, "tokens of context (default: what fits, at most the trained length)")
	fs.IntVar(&f.chunk, "chunk", 0, "tokens of a prompt to run in one step at most (default: chosen)")
	fs.StringVar(&f.kvType, "kv-type", "f16", "type of the KV cache: "+strings.Join(engine.KVTypes(), ", "))
	fs.StringSliceVar(&f.disable, "disable", nil, "device features not to use: "+strings.Join(vk.Disabled(), ", "))
	fs.StringSliceVar(&f.enable, "enable", nil, "device features to use even on a CPU, where they only slow it down: "+strings.Join(vk.Enabled(), ", "))
	fs.BoolVar(&f.oneQueue, "one-queue", false, "upload weights on the compute queue, as on devices without a transfer queue")
	fs.StringVar(&f.experts, "expert-cache", "", "which experts leave VRAM where not all fit: "+strings.Join(engine.ExpertPolicies(), ", ")+" (default: adaptive)")
	fs.StringVar(&f.pace, "pace", "auto", "auto: let the GPU rest where it would get hotter than --target-temp; off: never")
	fs.IntVar(&f.targetTemp, "target-temp", 0, "temperature in °C to keep the GPU at or below (default: a few degrees below the one at which it slows itself, or 83)")
	fs.BoolVar(&f.validate, "validate", false, "turn Vulkan's validation layers on (slow)")
}

// registerRouting is for commands that load one model.
func (f *modelFlags) registerRouting(fs *pflag.FlagSet) {
	fs.StringVar(&f.routing, "trace-experts", "", "write which experts each token uses to this file, for tools/cachesim")
}

func (f *modelFlags) options(a *app) engine.Options {
	return engine.Options{
		Device: f.device, ContextLength: f.ctx, DeviceBytes: int64(f.vram), HostBytes: int64(f.ram), KVType: f.kvType,
		Pace: f.pace, TargetTempC: f.targetTemp, CacheDir: a.cached("kernels"), Logger: a.log, SelfTest: a.tests.begin,
		Tuning: engine.Tuning{
			Chunk: f.chunk, Disable: f.disable, Enable: f.enable, OneQueue: f.oneQueue, Validate: f.validate,
			ExpertPolicy: f.experts, VulkanLoader: a.vulkan().LoaderPath,
		},
	}
}

// load loads the model that a MODEL argument names, with a progress bar.
func (f *modelFlags) load(ctx context.Context, a *app, arg string) (*engine.Model, error) {
	path, err := modelPath(arg)
	if err != nil {
		return nil, err
	}
	o := f.options(a)
	if f.routing != "" && !f.traced {
		f.traced = true // of one load: another one would begin anew
		trace := &later{r: f.results, path: f.routing}
		a.last = append(a.last, trace.finish) // by then the model is closed, and has written all of it
		o.Tuning.Routing = trace
	}
	var mu sync.Mutex // loading goes on beside the first step
	var bar *progress
	over := false
	o.Progress = func(done, total int64) {
		mu.Lock()
		defer mu.Unlock()
		if over {
			return
		}
		if bar == nil {
			bar = a.progress("loading", total)
		}
		bar.Resize(total) // where less RAM can be had than was planned
		bar.Set(done)
	}
	m, err := engine.Load(ctx, path, o)
	if err == nil {
		// What is typed next, or the answer, must not meet the bar.
		if err = m.Loaded(ctx); err != nil {
			m.Close()
		}
	}
	mu.Lock()
	if over = true; bar != nil {
		bar.Close()
	}
	mu.Unlock()
	if err != nil {
		return nil, explainLoader(optionError(err))
	}
	if f.routing != "" && m.Info().Experts == 0 {
		m.Close()
		return nil, usageErrorf("--trace-experts: %s has no experts to trace", arg)
	}
	return m, nil
}

// asks prepares the files that the command is asked to write; others are what it reads beside the model.
func (f *modelFlags) asks(a *app, arg string, others []string, list ...result) (err error) {
	list = append(list, result{"trace-experts", f.routing, true})
	if !slices.ContainsFunc(list, func(r result) bool { return r.path != "" }) {
		return nil
	}
	f.results, err = a.newResults(modelInputs(arg, others...), list...)
	return err
}

// optionError names the flag of an engine option.
func optionError(err error) error {
	var option *engine.OptionError
	if errors.As(err, &option) {
		return usageErrorf("--%s: found %q, wanted %s", flagNames[option.Name], option.Found, option.Want)
	}
	return err
}

// flagNames says which flag sets an engine option.
var flagNames = map[string]string{
	"KVType": "kv-type", "ContextLength": "ctx", "DeviceBytes": "vram", "HostBytes": "ram", "Tuning.Chunk": "chunk", "Tuning.Disable": "disable", "Tuning.Enable": "enable",
	"Tuning.ExpertPolicy": "expert-cache", "Pace": "pace", "TargetTempC": "target-temp",
}

// tokenizerNeeded fails where a model's tokenizer is one we don't know.
func tokenizerNeeded(m *engine.Model) error {
	if m.Tokenizer() != nil {
		return nil
	}
	return withHint(m.TokenizerError(), "text can't be turned into tokens; leat eval MODEL --tokens 1,2,3 runs the model on token ids")
}

func plural(n int, one string) string {
	if n == 1 {
		return one
	}
	if strings.HasSuffix(one, "s") {
		return one + "es"
	}
	return one + "s"
}
