package engine_test

import (
	"context"
	"fmt"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"leat/engine"
	"leat/engine/token"
	"leat/tools/synth/synthetic"
	"leat/vk/mem"
)

// BenchmarkInPlace loads a model and decodes with it, in place in either kind of memory and
// as on a discrete device, all resident and with half of it streamed from disk.
//
//	go test ./engine -run '^$' -bench InPlace -benchtime 5x
func BenchmarkInPlace(b *testing.B) {
	path := filepath.Join(b.TempDir(), "m.gguf")
	shape := synthetic.Shape{BlockCount: 16, EmbeddingLength: 1024, FeedForwardLength: 2816, HeadCount: 16, HeadCountKV: 4, VocabSize: 8000}
	if err := synthetic.Write(path, synthetic.Options{Arch: "llama", Type: "f16", Shape: shape}); err != nil {
		b.Fatal(err)
	}
	base := setup(engine.Options{ContextLength: 256, HostBytes: 1 << 20})
	probe := load(b, path, base)
	all := engine.DetailsOf(probe).Plan.DeviceBytes
	probe.Close()
	for _, part := range []int64{110, 60} {
		for _, kind := range []mem.Shared{mem.NotShared, mem.Imported, mem.Mapped} {
			b.Run(fmt.Sprintf("%d%%/%v", part, kind), func(b *testing.B) {
				o := base
				o.DeviceBytes, o.Tuning.Discrete = all*part/100, kind == mem.NotShared
				o = engine.WithShared(o, kind)
				var loaded, decoded, loadedCPU, decodedCPU time.Duration
				const tokens = 4
				for range b.N {
					begin, cpu := time.Now(), cpuTime()
					m := load(b, path, o)
					if err := m.Loaded(context.Background()); err != nil {
						b.Fatal(err)
					}
					loaded, loadedCPU = loaded+time.Since(begin), loadedCPU+cpuTime()-cpu
					s, err := m.NewSession()
					if err != nil {
						b.Fatal(err)
					}
					for i := range tokens + 2 {
						begin, cpu := time.Now(), cpuTime()
						if _, err := s.Forward(context.Background(), []token.ID{token.ID(i + 1)}); err != nil {
							b.Fatal(err)
						}
						if i >= 2 {
							decoded, decodedCPU = decoded+time.Since(begin), decodedCPU+cpuTime()-cpu
						}
					}
					if engine.DetailsOf(m).Plan.InPlace != (kind != mem.NotShared) {
						b.Fatal("the plan is of another kind")
					}
					s.Close()
					m.Close()
				}
				b.ReportMetric(loaded.Seconds()/float64(b.N), "load-s")
				b.ReportMetric(loadedCPU.Seconds()/float64(b.N), "load-cpu-s")
				b.ReportMetric(float64(b.N*tokens)/decoded.Seconds(), "tok/s")
				b.ReportMetric(decodedCPU.Seconds()/float64(b.N*tokens), "cpu-s/tok")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// cpuTime is what all threads of this process have used: the device's too, where that is a CPU.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
