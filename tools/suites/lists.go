package main

var suites = map[string]*suite{"layers": &layers, "race": &race}

// The layers look at calls of Vulkan and at SPIR-V. They must see each call of the binding, each kernel, and each way of the engine
// to bring weights, to submit, and to stop: resident, streamed from RAM and from disk, in place, in slots; recorded anew and
// again; on one queue and on several; for one session and for more; closed at any moment.
var layers = suite{
	parts: []part{
		{packages: []string{"vk", "vk/internal/raw", "vk/mem", "vk/xfer", "internal/kernels", "internal/kv", "internal/weights"}},
		{packages: []string{"shaders/conform", "internal/selftest"}, only: []string{"TestQuick", "TestQuickCovers", "TestProve"},
			why: "the quick cases are of every kernel; the others dispatch the same code with other shapes"},
		{packages: []string{"engine"}, only: []string{"TestBitEqual", "TestExpertSlots", "TestReplay", "TestSessions", "TestCloseAnyMoment", "TestStopThenShrink", "TestGenerateGreedy"},
			why: "between them they bring weights, submit, and stop in each of those ways; the others compare numbers, or measure, by the same calls"},
	},
	without: map[string]string{
		"cmd/leat":           "its tests run the program, which turns the layers on nowhere; what it calls is the engine",
		"internal/bench":     "runs models by the engine's exported calls",
		"internal/record":    "its tests record dry, without a device",
		"internal/step":      "its tests make no step",
		"internal/submit":    "its tests open no device",
		"internal/calibrate": "measures by vk/xfer, by kernels that TestQuick runs, and by the engine's rehearsal",
		"tools/golden":       "runs models by the engine's exported calls",
		"tools/kernelbench":  "measures kernels that TestQuick runs",
		"tools/kerneltable":  "lists the rules of kernels and opens no device",
		"tools/soak":         "runs models by the engine's exported calls",
		"tools/streambench":  "measures by vk/xfer",
	},
}

// The race detector is for packages that start goroutines or hold locks, and for their tests in which several goroutines are at
// work: with -short, tests in which one does all skip by themselves.
var race = suite{
	parts: []part{
		{packages: []string{"vk", "vk/internal/raw", "vk/mem", "vk/xfer", "vk/file", "vk/limit", "internal/kernels", "internal/kernels/cache", "decompose", "decompose/pack", "internal/output", "internal/adapt",
			"internal/step", "internal/submit", "internal/kv", "internal/weights", "internal/pace", "internal/pace/nvml", "internal/trace", "internal/bench", "internal/calibrate"},
			left: []left{{"they search and measure in one goroutine", []string{"TestTune", "TestSearch", "TestRehearsal", "TestTiers", "TestExperts"}},
				{"they simulate a GPU in one goroutine", []string{"TestDrift", "TestSteadyUnderThrottle", "TestHoldsTarget", "TestNoRestWithoutNeed", "TestChangingWork"}}}},
		{packages: []string{"cmd/leat"}, left: []left{
			{"they run the program as processes of its own, which share nothing", []string{"TestScript", "TestInterrupt", "TestFullDisk", "TestDoctor"}}}},
		{packages: []string{"engine"}, only: []string{"TestSessionCalls", "TestSessionClosedMidStep", "TestModelCallsAfterClose", "TestCloseAnyMoment", "TestCloseMidToken", "TestContexts",
			"TestReadFails", "TestExpertsReadFails", "TestExpertsStop", "TestExpertsShrink", "TestShrink", "TestStopThenShrink", "TestSourceChanges", "TestTrace"},
			why: "in them calls, readers, uploads and closes meet; in the others one goroutine steps, beside the same readers and uploads"},
	},
	without: map[string]string{},
}
