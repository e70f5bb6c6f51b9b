package kernels

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"leat/internal/kernels/cache"
	"leat/shaders"
	"leat/vk"
)

// pipelineID is a testID of the row with its own constants.
func pipelineID(t *testing.T, name string) string {
	t.Helper()
	row, ok := shaders.Lookup(name)
	if !ok {
		t.Fatalf("no kernel %s", name)
	}
	return testID(row, specValues(row, choice{}), 0)
}

// leave plays a process that ends at what the marker says, with a crash's text where it has one.
func leave(t *testing.T, folder *cache.Folder, p *vk.PhysicalDevice, what, crash string) {
	t.Helper()
	m, err := folder.NewMarker(KindCrashes, DeviceKey(p))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if err := m.Set(what); err != nil {
		t.Fatal(err)
	}
	found, err := filepath.Glob(filepath.Join(folder.Path(), KindCrashes+"-*.mark"))
	if err != nil || len(found) != 1 {
		t.Fatalf("markers %v, %v, want one", found, err)
	}
	data, err := os.ReadFile(found[0])
	if err != nil {
		t.Fatal(err)
	}
	m.Close()
	if err := os.WriteFile(found[0], append(data, crash...), 0o600); err != nil { // nobody's lock
		t.Fatal(err)
	}
}

const segv = "SIGSEGV: segmentation violation\nPC=0x7f m=4 sigcode=1 addr=0x0\nsignal arrived during cgo execution\n"

func TestGuard(t *testing.T) {
	p := &vk.PhysicalDevice{Name: "Some GPU"}
	standIn, plain := pipelineID(t, "mul_mat_vec_int8_q4_k"), pipelineID(t, "mul_mat_vec_q4_k")
	type run struct {
		leaves, crash string // what the process before it ended at
		says          bool   // the kernel's name, once
		refuses       bool
		passes        string // a stage that goes well in it
	}
	for name, c := range map[string]struct {
		id   string
		runs []run
	}{
		"a crash":                       {standIn, []run{{stageCompile, segv, true, true, ""}, {"", "", false, true, ""}, {"", "", false, true, ""}}},
		"a crash of a test":             {standIn, []run{{stageTest, segv, true, true, ""}, {"", "", false, true, ""}}},
		"killed once":                   {standIn, []run{{stageTest, "", true, true, ""}, {"", "", false, false, stageTest}, {stageTest, "", true, true, ""}, {"", "", false, false, ""}}},
		"killed twice":                  {standIn, []run{{stageCompile, "", true, true, ""}, {stageCompile, "", true, true, ""}, {"", "", false, true, ""}}},
		"compiled, and ended in a test": {standIn, []run{{stageTest, "", true, true, ""}, {"", "", false, false, stageCompile}, {stageTest, "", true, true, ""}, {"", "", false, true, ""}}},
		"no stand-in, a crash":          {plain, []run{{stageCompile, segv, true, true, ""}, {"", "", false, true, ""}}},
		"no stand-in, killed":           {plain, []run{{stageCompile, "", true, false, ""}, {stageCompile, "", true, true, ""}, {"", "", false, true, ""}}},
	} {
		t.Run(name, func(t *testing.T) {
			folder := cache.Open(t.TempDir())
			kernel := nameOf(c.id)
			for i, r := range c.runs {
				if r.leaves != "" {
					leave(t, folder, p, r.leaves+" "+c.id, r.crash)
				}
				var log bytes.Buffer
				g := openGuard(p, folder, slog.New(slog.NewTextHandler(&log, nil)))
				if why := g.crashed(c.id, HasStandIn(kernel)); (why != "") != r.refuses {
					t.Errorf("run %d: it is not used for %q, want that %v", i, why, r.refuses)
				}
				if said := strings.Count(log.String(), kernel); (said == 1) != r.says || said > 1 {
					t.Errorf("run %d: said %d times, want %v:\n%s", i, said, r.says, &log)
				}
				if names := g.failed()[kernel] != ""; names != (r.refuses && HasStandIn(kernel)) {
					t.Errorf("run %d: it is among %v", i, g.failed())
				}
				if listed := len(g.list()) == 1; listed != r.refuses {
					t.Errorf("run %d: listed %v", i, g.list())
				}
				if r.passes != "" {
					g.begin(r.passes, c.id)(true)
				}
				g.close()
			}
			if err := Retry(folder, p); err != nil {
				t.Fatal(err)
			}
			g := openGuard(p, folder, slog.New(slog.DiscardHandler))
			if why := g.crashed(c.id, true); why != "" || len(g.list()) != 0 {
				t.Errorf("after Retry it is not used for %q; listed %v", why, g.list())
			}
		})
	}
}

// What compiled once costs no marker any more, and what another process compiles meanwhile is no crash.
func TestGuardMarks(t *testing.T) {
	p := &vk.PhysicalDevice{Name: "Some GPU"}
	folder := cache.Open(t.TempDir())
	marks := func() (said string) {
		found, _ := filepath.Glob(filepath.Join(folder.Path(), "*.mark"))
		for _, path := range found {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			said += string(data)
		}
		return said
	}
	outer, inner := pipelineID(t, "mul_mat_vec_int8_q4_k"), pipelineID(t, "quantize_q8")
	var log bytes.Buffer
	open := func() *guard { return openGuard(p, folder, slog.New(slog.NewTextHandler(&log, nil))) }
	a := open()
	endTest := a.begin(stageTest, outer)
	end := a.begin(stageCompile, inner)
	if got, want := marks(), "compile "+inner+"\n"; got != want {
		t.Errorf("the marker says %q, want %q", got, want)
	}
	if b := open(); b.crashed(inner, true) != "" || log.Len() > 0 {
		t.Errorf("what a live process does counts as a crash: %s", &log)
	}
	end(true)
	if got, want := marks(), "test "+outer+"\n"; got != want {
		t.Errorf("the marker says %q, want %q", got, want)
	}
	endTest(true)
	if got := marks(); got != "" {
		t.Errorf("the marker says %q, want nothing", got)
	}
	a.close()
	c := open()
	c.begin(stageCompile, inner)
	if c.marker != nil {
		t.Error("what compiled in an earlier run is marked")
	}
	c.begin(stageCompile, pipelineID(t, "swiglu"))
	if c.marker == nil {
		t.Error("what was never compiled is not marked")
	}
	c.close()
	var none *guard
	none.begin(stageCompile, inner)(true)
	none.close()
	if none.crashed(inner, true) != "" || none.save() != nil || none.list() != nil {
		t.Error("no guard knows something")
	}
}

// Markers of other versions, garbage, and a folder that can't be written cost nothing but what they would tell.
func TestGuardOdd(t *testing.T) {
	p := &vk.PhysicalDevice{Name: "Some GPU"}
	folder := cache.Open(t.TempDir())
	for _, what := range []string{"", "compile", "compile nothing [] 0 00", "compile mul_mat_vec_int8_q4_k [1] 0 001122334455", strings.Repeat("x", 1<<16)} {
		leave(t, folder, p, what, segv)
		g := openGuard(p, folder, slog.New(slog.DiscardHandler))
		if got := g.list(); len(got) != 0 {
			t.Errorf("after a marker that says %.50q %v are not used", what, got)
		}
		g.close()
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	g := openGuard(p, cache.Open(file), slog.New(slog.DiscardHandler))
	g.begin(stageCompile, pipelineID(t, "swiglu"))(true)
	g.close()
}
