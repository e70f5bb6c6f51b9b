package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"leat/engine"
	"leat/vk"
)

// gauge reads what the process takes.
type gauge struct {
	m     *engine.Model
	inst  *vk.Instance // a second one, to ask the driver
	phys  *vk.PhysicalDevice
	begin time.Time
}

// sample is one line of the CSV; figures that the system does not tell are 0.
type sample struct {
	seconds, perSec, cpu               float64 // perSec: tokens since the sample before; cpu: seconds of all threads
	rounds, tokens                     int64
	rss, heap, cached                  int64 // heap: Go's; cached: the system's page cache
	vram, driverVRAM, vramBudget, pins int64 // vram: by our accounting; driverVRAM: by the driver
	handles, threads, goroutines       int64
	tempC                              float64
}

const header = "seconds,rounds,tokens,tok_per_s,rss_bytes,go_heap_bytes,page_cache_bytes,vram_bytes,driver_vram_bytes,driver_budget_bytes,pinned_bytes,handles,threads,goroutines,temp_c,cpu_seconds\n"

func openGauge(m *engine.Model) (*gauge, error) {
	inst, err := vk.Open(vk.InstanceOptions{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	phys, err := inst.Pick("")
	if err != nil {
		return nil, errors.Join(err, inst.Close())
	}
	return &gauge{m: m, inst: inst, phys: phys, begin: time.Now()}, nil
}

func (g *gauge) close() { _ = g.inst.Close() }

// watch writes samples until ctx is over, and once more then.
func (g *gauge) watch(ctx context.Context, r *rounds, every time.Duration, w io.Writer) (list []sample, err error) {
	if _, err := io.WriteString(w, header); err != nil {
		return nil, err
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		last := false
		select {
		case <-tick.C:
		case <-ctx.Done():
			last = true
		}
		s := g.take(r)
		if n := len(list); n > 0 {
			s.perSec = float64(s.tokens-list[n-1].tokens) / (s.seconds - list[n-1].seconds)
		}
		list = append(list, s)
		if err := s.write(w); err != nil || last {
			return list, err
		}
	}
}

func (g *gauge) take(r *rounds) (s sample) {
	s.seconds, s.rounds, s.tokens = time.Since(g.begin).Seconds(), r.whole.Load(), r.tokens.Load()
	s.cpu = cpuSeconds()
	status := procFile("/proc/self/status")
	s.rss, s.threads = status["VmRSS:"]<<10, status["Threads:"]
	s.cached = procFile("/proc/meminfo")["Cached:"] << 10
	if list, err := os.ReadDir("/proc/self/fd"); err == nil {
		s.handles = int64(len(list))
	}
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	s.heap, s.goroutines = int64(mem.HeapAlloc), int64(runtime.NumGoroutine())
	if g.phys.Features.MemoryBudget {
		for _, h := range g.phys.HeapsNow() {
			if h.DeviceLocal {
				s.driverVRAM, s.vramBudget = s.driverVRAM+h.UsedBytes, s.vramBudget+h.BudgetBytes
			}
		}
	}
	st := g.m.Stats()
	s.vram, s.pins, s.tempC = st.VRAMBytes, st.HostBytes, st.Pace.Reading.TempC
	return s
}

func (s *sample) write(w io.Writer) error {
	_, err := fmt.Fprintf(w, "%.1f,%d,%d,%.3f,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%.0f,%.2f\n", s.seconds, s.rounds, s.tokens, s.perSec, s.rss, s.heap, s.cached,
		s.vram, s.driverVRAM, s.vramBudget, s.pins, s.handles, s.threads, s.goroutines, s.tempC, s.cpu)
	return err
}

// procFile reads the numbers of one of Linux' files; elsewhere there are none.
func procFile(path string) map[string]int64 {
	values := map[string]int64{}
	text, err := os.ReadFile(path)
	if err != nil {
		return values
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) > 1 {
			values[f[0]], _ = strconv.ParseInt(f[1], 10, 64)
		}
	}
	return values
}

// ticksPerSec is how Linux counts a process's time for others to read, whatever its own clock.
const ticksPerSec = 100

// cpuSeconds is how long this process's threads have run, in the system too; 0 where that can't be read.
func cpuSeconds() float64 {
	text, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return 0
	}
	f := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:])) // a name may have spaces
	const user, system = 11, 12
	if len(f) <= system {
		return 0
	}
	u, _ := strconv.ParseFloat(f[user], 64)
	s, _ := strconv.ParseFloat(f[system], 64)
	return (u + s) / ticksPerSec
}
