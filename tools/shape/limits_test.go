package shape_test

// What one reader can hold in mind at once.
const (
	mostMethods       = 25  // of a type, those of embedded types included
	mostFields        = 15  // of a struct that is not plain data, those of embedded structs included
	mostFileLines     = 400 // of a file without tests
	mostFunctionLines = 60  // of a function without tests
)

// exception is something that is larger than a limit.
type exception struct {
	size int // it may shrink, not grow; at the limit or below it the exception must go
	why  string
}

// exceptions are by kind and name, as TestShape reports them. The list may only get shorter.
var exceptions = map[string]exception{
	"methods internal/kernels.check": {33, "collects how a device refuses each kernel"},
	"fields internal/kernels.check":  {18, "collects how a device refuses each kernel"},
	"fields internal/kernels.choice": {17, "a choice of a variant for one product"},

	"fields tools/kernelbench.device": {16, "a device under a benchmark"},

	"methods engine/chat/jinja.machine": {66, "an interpreter: one method for each construct of the language"},
	"methods engine/chat/jinja.parser":  {41, "a parser by descent: one method for each construct of the language"},

	"lines of file tools/genvk/registry.go": {402, "a change makes the generated binding stale"},

	"lines of function shaders/conform.fewCases":         {73, "a table"},
	"lines of function internal/selftest.mulMatInHalves": {68, "a table"},
	"lines of function internal/selftest.ropeInto":       {62, "a table"},
	"lines of function tools/golden/tiny.file.deltaNets": {63, "a table of tensors"},
	"lines of function tools/kernelbench.device.measure": {68, "the order of the work"},
	"lines of function tools/kernelbench.layer":          {79, "a table of kernels"},
	"lines of function tools/kernelbench.parse":          {70, "a table of flags"},
}

// plainData are structs with many fields that carry no state: they are filled in once, then read. The value says what they are. Names are patterns
// of path.Match.
var plainData = map[string]string{
	"engine.Stats":                  "a report",
	"engine/sample.Params":          "options",
	"decompose/pack.Manifest":       "a JSON file",
	"internal/arch.Hyper":           "the keys of a file, by GGUF's names",
	"internal/arch.Op":              "an operation: filled in once, then read",
	"internal/bench.Experts":        "a report",
	"internal/bench.Placement":      "a report",
	"internal/bench.Row":            "a report",
	"internal/plan.Budget":          "options",
	"internal/plan.Inputs":          "sizes of buffers",
	"internal/plan.Plan":            "the plan: a decision, not a process",
	"internal/step.Options":         "options",
	"internal/submit.Options":       "options",
	"shaders.*Args":                 "buffers and push constants of one kernel",
	"vk.Features":                   "what a device can do",
	"vk.PhysicalDevice":             "what a device is",
	"cmd/leat.benchFlags":           "flags of a command",
	"cmd/leat.modelFlags":           "flags of a command",
	"cmd/leat.deviceReport":         "a report",
	"cmd/leat.runStats":             "a report",
	"tools/bindcmp/rawside.Binding": "a row of a table",
	"tools/cachesim.options":        "flags of a command",
	"tools/kernelbench.options":     "flags of a command",
	"tools/soak.sample":             "a report",
	"tools/streambench.options":     "flags of a command",
	"tools/synth/synthetic.Options": "options",
}
