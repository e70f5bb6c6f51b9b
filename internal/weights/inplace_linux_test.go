package weights

import (
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"leat/tools/synth/synthetic"
	"leat/vk/mem"
)

// BenchmarkInPlace moves a model's bytes without computing: all of it to where it stays, or
// all of it through the ring in each step, uploaded or in place. MB/s is of wall time, cpu
// is the CPU's share, the device's copies included where that is a CPU.
func BenchmarkInPlace(b *testing.B) {
	path := filepath.Join(b.TempDir(), "m.gguf")
	shape := synthetic.Shape{BlockCount: 16, EmbeddingLength: 1024, FeedForwardLength: 2816, HeadCount: 16, HeadCountKV: 4, VocabSize: 8000}
	if err := synthetic.Write(path, synthetic.Options{Arch: "llama", Type: "f16", Shape: shape}); err != nil {
		b.Fatal(err)
	}
	for _, kind := range []mem.Shared{mem.NotShared, mem.Imported, mem.Mapped} {
		b.Run("load/"+kind.String(), func(b *testing.B) {
			var wall, cpu time.Duration
			var bytes int64
			for range b.N {
				begin, used := time.Now(), cpuTime()
				r := newRig(b, path, setup{extra: 1 << 30, host: 1, shared: kind})
				r.ok(r.s.Loaded(b.Context()))
				wall, cpu = wall+time.Since(begin), cpu+cpuTime()-used
				bytes += r.s.progress.total
				r.ok(r.s.Close())
			}
			rates(b, bytes, wall, cpu)
		})
		b.Run("stream/"+kind.String(), func(b *testing.B) {
			r := newRig(b, path, setup{extra: 64 << 20, host: 1, shared: kind, ring: 100 << 20})
			r.ok(r.step(true, false))
			begin, used := time.Now(), cpuTime()
			for range b.N {
				r.ok(r.step(true, false))
				r.ok(r.compute.Wait(b.Context(), r.value))
			}
			rates(b, r.o.Plan.StreamedBytes*int64(b.N), time.Since(begin), cpuTime()-used)
		})
	}
}

func rates(b *testing.B, bytes int64, wall, cpu time.Duration) {
	b.ReportMetric(float64(bytes)/1e6/wall.Seconds(), "MB/s")
	b.ReportMetric(cpu.Seconds()/(float64(bytes)/1e9), "cpu-s/GB")
	b.ReportMetric(0, "ns/op")
}

// cpuTime is what all threads of this process have used.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
