package kernels

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"leat/internal/kernels/cache"
	"leat/shaders"
	"leat/vk"
)

// KindCrashes is the kind of the file, and of the markers, that say which pipelines a driver crashes in.
const KindCrashes = "crashes"

// outcome is what is known of a pipeline on a driver. The zero outcome says that the pipeline compiled.
type outcome struct {
	// Why says how the driver crashed in the pipeline, which is then not used before [Retry]. It is "" if the driver did not crash.
	Why string `json:"why,omitempty"`
	// Left counts processes that ended in the pipeline for an unknown reason. A single process may have been killed: the run that finds its marker
	// does not use the kernel, and the next run tries the kernel again. Two processes count as a crash.
	Left int `json:"left,omitempty"`
}

// crashes is how many processes must end in a pipeline for an unknown reason before that counts as a crash.
const crashes = 2

// crashFolder is the folder of guards whose [Options] name none.
var crashFolder atomic.Pointer[cache.Folder]

// NoteCrashes makes folder the place where kernels without an [Options].Cache record which pipelines a driver crashes in, and turns on
// [cache.ExplainCrashes]. A program calls it once. With nil nothing is recorded.
func NoteCrashes(folder *cache.Folder) {
	crashFolder.Store(folder)
	if folder != nil {
		cache.ExplainCrashes()
	}
}

// guard records which pipelines the driver of a device crashes in. A marker names a pipeline while it is compiled for the first time and
// while its self-test runs. A nil guard knows nothing and marks nothing.
type guard struct {
	folder *cache.Folder // has the crashes file and the markers
	key    string        // [DeviceKey]
	log    *slog.Logger  // gets warnings of crashes

	mu       sync.Mutex         // guards the fields that follow
	known    map[string]outcome // outcomes of earlier runs and this one, by testID
	spared   map[string]string  // by testID: why this run does not use the pipeline, though the next run may
	unsaved  map[string]outcome // outcomes not written to disk yet
	underWay []string           // stages under way, as "STAGE TESTID", the innermost last: the marker names the last
	marker   *cache.Marker      // nil until it is needed
	noMarker bool               // a marker could not be made, and is not tried again
}

// openGuard makes the guard of a device, with the outcomes in folder, and counts the markers that dead processes left as crashes or suspicions. It
// never fails: it treats a file that can't be read as absent. It returns nil if folder is nil.
func openGuard(p *vk.PhysicalDevice, folder *cache.Folder, log *slog.Logger) *guard {
	if folder == nil {
		return nil
	}
	g := &guard{folder: folder, key: DeviceKey(p), log: log, spared: map[string]string{}, unsaved: map[string]outcome{}}
	if err := folder.TakeLeft(KindCrashes, g.key, func(l cache.LeftMarker) error { return g.noteLeftMarker(l, p.Name) }); err != nil {
		log.Info("markers that earlier runs left are not all noted", "error", err)
	}
	data, err := folder.Load(KindCrashes, g.key)
	if err != nil {
		log.Info("crashes of earlier runs are not known", "error", err)
	}
	g.known = decodeOutcomes(data)
	maps.Copy(g.known, g.unsaved) // if the folder can't be written, the file lacks them
	return g
}

// decodeOutcomes reads a crashes file; a file that is damaged or too large is read as empty.
func decodeOutcomes(data []byte) map[string]outcome {
	m := map[string]outcome{}
	if json.Unmarshal(data, &m) != nil || len(m) > maxOutcomes {
		return map[string]outcome{}
	}
	return m
}

// maxOutcomes is the most entries of a crashes file: one with more is damaged, or full of old versions' kernels.
const maxOutcomes = 4096

// noteLeftMarker notes the marker that a dead process left. It is a crash if the process died of a signal, or if earlier processes ended in the same
// pipeline. Otherwise it is a suspicion: this run does not use the kernel if another can stand in for it. It logs a warning.
func (g *guard) noteLeftMarker(l cache.LeftMarker, device string) error {
	stage, id, ok := strings.Cut(l.Work, " ")
	if _, known := shaders.Lookup(nameOf(id)); !ok || !known {
		return nil // the marker is from another version of the program
	}
	var now outcome
	note := func(old outcome) outcome {
		now = outcome{Why: old.Why, Left: old.Left + 1}
		if now.Why == "" && (l.Signal != "" || now.Left >= crashes) {
			now.Why = crashText(stage, l.Signal, now.Left)
		}
		return now
	}
	err := g.update(func(all map[string]outcome) { all[id] = note(all[id]) })
	if err != nil {
		g.unsaved[id] = note(outcome{})
	}
	kernel := nameOf(id)
	switch {
	case now.Why == "" && !HasStandIn(kernel):
		g.log.Warn("an earlier run ended at this kernel: it is tried once more, as no other stands in for it", "kernel", kernel, "device", device)
		return err
	case now.Why == "":
		g.spared[id] = "leat ended as the driver " + stages[stage] + " this kernel, perhaps for another reason: the next run tries it again"
		now.Why = g.spared[id]
	}
	instead := "there is no other in its place"
	if HasStandIn(kernel) {
		instead = "another one is in its place, slower"
	}
	g.log.Warn("a kernel that ended an earlier run is not used, "+instead+"; leat doctor --retry tries it again", "kernel", kernel, "device", device, "reason", now.Why)
	return err
}

// The stages that a marker names, and what the driver does in each.
const (
	stageCompile = "compile" // the driver compiles the pipeline
	stageTest    = "test"    // the driver runs the pipeline's self-test
)

// stages has, for each stage, what the driver did with the kernel, for messages.
var stages = map[string]string{stageCompile: "compiled", stageTest: "ran"}

// crashText says how the driver crashed; without a signal, how often a process ended in the kernel.
func crashText(stage, signal string, left int) string {
	if signal == "" {
		return fmt.Sprintf("the driver ended leat %d times as it %s this kernel", left, stages[stage])
	}
	return fmt.Sprintf("the driver crashed as it %s this kernel (%s)", stages[stage], signal)
}

// update changes the crashes file of the device, under the file's lock.
func (g *guard) update(change func(all map[string]outcome)) error {
	return g.folder.Update(KindCrashes, g.key, func(old []byte) ([]byte, error) {
		all := decodeOutcomes(old)
		change(all)
		if len(all) == 0 {
			return nil, nil
		}
		return json.Marshal(all)
	})
}

// crashed says why a pipeline must not be compiled, or "" if it may be. Suspicion alone is enough for a pipeline that has a stand-in.
func (g *guard) crashed(id string, standIn bool) string {
	if g == nil {
		return ""
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if why := g.known[id].Why; why != "" {
		return why
	}
	if standIn {
		return g.spared[id]
	}
	return ""
}

// failed maps the kernels that have a stand-in and must not be used to the reason.
func (g *guard) failed() map[string]string {
	rows := map[string]string{}
	if g == nil {
		return rows
	}
	for _, c := range g.list() {
		if HasStandIn(c.Kernel) {
			rows[c.Kernel] = c.Why
		}
	}
	return rows
}

// begin marks that a stage of a pipeline is under way. It marks no compilation of a pipeline that is known to compile. The returned function ends the mark;
// ok says whether the stage went well, which it notes.
func (g *guard) begin(stage, id string) (end func(ok bool)) {
	if g == nil {
		return func(bool) {}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if r, known := g.known[id]; stage == stageCompile && known && r == (outcome{}) {
		return func(bool) {}
	}
	g.underWay = append(g.underWay, stage+" "+id)
	g.mark()
	return func(ok bool) {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.underWay = g.underWay[:len(g.underWay)-1]
		g.mark()
		_, known := g.known[id]
		if suspect := known && stage == stageCompile && HasStandIn(nameOf(id)); ok && !suspect { // an earlier run may have ended in the self-test that follows
			g.known[id], g.unsaved[id] = outcome{}, outcome{}
		}
	}
}

// mark writes the innermost stage under way into the marker, or clears the marker if there is none. The first mark makes the marker.
func (g *guard) mark() {
	if g.marker == nil && !g.noMarker && len(g.underWay) > 0 {
		var err error
		if g.marker, err = g.folder.NewMarker(KindCrashes, g.key); err != nil {
			g.log.Info("a driver that crashes will not be known to the next run", "error", err)
			g.noMarker = true
		}
	}
	switch {
	case g.marker == nil:
	case len(g.underWay) == 0:
		g.marker.Clear()
	default:
		if err := g.marker.Set(g.underWay[len(g.underWay)-1]); err != nil {
			g.log.Info("a driver that crashes will not be known to the next run", "error", err)
		}
	}
}

// save writes unsaved outcomes to disk.
func (g *guard) save() error {
	if g == nil {
		return nil
	}
	g.mu.Lock()
	fresh := g.unsaved
	g.unsaved = map[string]outcome{}
	g.mu.Unlock()
	if len(fresh) == 0 {
		return nil
	}
	return g.update(func(all map[string]outcome) {
		for id, r := range fresh {
			if all[id].Why == "" { // keep a crash that another process has noted
				all[id] = r
			}
		}
	})
}

// close writes unsaved outcomes to disk and deletes the marker.
func (g *guard) close() {
	if g == nil {
		return
	}
	if err := g.save(); err != nil {
		g.log.Info("what the driver compiled is not kept for the next run", "error", err)
	}
	g.marker.Close()
}

// Crash is a pipeline in which the driver ended a run.
type Crash struct {
	Kernel   string // name of the kernel
	Pipeline string // the pipeline's constants, subgroup size and code hash
	Why      string // how the run ended
	Suspect  bool   // the run may have ended for another reason: the next run tries the pipeline again
}

// list returns the crashes for [Kernels.Crashes], ordered by kernel, without those of kernels whose code has changed.
func (g *guard) list() (all []Crash) {
	if g == nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(g.known)) {
		why, suspect := g.known[id].Why, false
		if why == "" {
			why = g.spared[id]
			suspect = true
		}
		row, ok := shaders.Lookup(nameOf(id))
		if why == "" || !ok || !ofCode(id, row) {
			continue
		}
		all = append(all, Crash{row.Name, id[len(row.Name)+1:], why, suspect})
	}
	return all
}

// Crashes lists the pipelines in which the driver ended a run, and that this run does not use for that reason.
func (k *Kernels) Crashes() []Crash { return k.guard.list() }

// Retry forgets which kernels crashed a device's driver or failed their self-test, so that they are tried again.
func Retry(folder *cache.Folder, p *vk.PhysicalDevice) error {
	g := openGuard(p, folder, slog.New(slog.DiscardHandler))
	if g == nil {
		return nil
	}
	err := g.update(func(all map[string]outcome) {
		maps.DeleteFunc(all, func(_ string, r outcome) bool { return r != (outcome{}) })
	})
	if err != nil {
		return err
	}
	return folder.Update(KindTests, g.key, func(old []byte) ([]byte, error) {
		all := decodeTests(old)
		maps.DeleteFunc(all, func(_, why string) bool { return why != "" })
		if len(all) == 0 {
			return nil, nil
		}
		return json.Marshal(all)
	})
}
