package kernels

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"

	"leat/internal/kernels/cache"
	"leat/vk"
)

// The kinds of files in the cache.
const (
	KindPipelines = "pipelines" // what the driver compiled
	KindTests     = "tests"     // results of self-tests
	KindTunes     = "tunes"     // what measured fastest
)

// DeviceKey names a device and its driver: what is kept holds for these alone.
func DeviceKey(p *vk.PhysicalDevice) string {
	return fmt.Sprintf("%s/%#x/%x", p.UUID, p.DriverVersion, p.CacheUUID)
}

// store is what is kept of one device. A nil one keeps nothing.
type store struct {
	folder *cache.Folder
	key    string
	log    *slog.Logger
	cache  *vk.PipelineCache // nil: the driver gave none
	dirty  atomic.Bool
	writes sync.WaitGroup
	one    sync.Mutex // held while writing
}

// openStore never fails: what can't be read is as if it were not there.
func openStore(dev *vk.Device, folder *cache.Folder, log *slog.Logger) *store {
	if folder == nil {
		return nil
	}
	s := &store{folder: folder, key: DeviceKey(dev.Physical), log: log}
	data, err := folder.Load(KindPipelines, s.key)
	if err == nil {
		s.cache, err = dev.NewPipelineCache(data)
	}
	if err != nil {
		log.Info("the pipeline cache is not used", "error", err)
		if s.cache, err = dev.NewPipelineCache(nil); err != nil {
			log.Info("there is no pipeline cache", "error", err)
			s.cache = nil
		}
	}
	return s
}

func (s *store) pipelines() *vk.PipelineCache {
	if s == nil {
		return nil
	}
	return s.cache
}

// grown says that there is something new to keep.
func (s *store) grown() {
	if s != nil {
		s.dirty.Store(true)
	}
}

// loadTests returns what was found by testID.
func (s *store) loadTests() map[string]string {
	if s == nil {
		return nil
	}
	data, err := s.folder.Load(KindTests, s.key)
	if err != nil {
		s.log.Info("results of earlier self-tests are not used", "error", err)
	}
	return decodeTests(data)
}

func decodeTests(data []byte) map[string]string {
	var m map[string]string
	if json.Unmarshal(data, &m) != nil {
		return nil
	}
	return m
}

// Keep writes what is new into the cache, beside whatever goes on, and returns at once.
func (k *Kernels) Keep() {
	if s := k.store; s != nil && s.dirty.Swap(false) {
		s.writes.Go(func() { s.write(k) })
	}
}

// close writes what is left and frees the cache.
func (s *store) close(k *Kernels) {
	if s == nil {
		return
	}
	s.writes.Wait()
	if s.dirty.Swap(false) {
		s.write(k)
	}
	if s.cache != nil {
		s.cache.Close()
	}
}

// write merges what is known with what other processes wrote. A full or read-only disk costs the next run some time.
func (s *store) write(k *Kernels) {
	s.one.Lock()
	defer s.one.Unlock()
	err := errors.Join(s.writePipelines(), s.writeTests(&k.tested), k.guard.keep())
	if err != nil {
		s.log.Info("kernels are not kept for the next run", "error", err)
	}
}

func (s *store) writePipelines() error {
	if s.cache == nil {
		return nil
	}
	own, err := s.cache.Data()
	if err != nil || len(own) == 0 {
		return err
	}
	return s.folder.Update(KindPipelines, s.key, func(old []byte) ([]byte, error) {
		if len(old) == 0 || string(old) == string(own) {
			return own, nil
		}
		if err := s.cache.Merge(old); err != nil {
			return own, nil
		}
		all, err := s.cache.Data()
		if err != nil || len(all) > cache.MaxBytes/2 { // of versions long gone, for the most part
			return own, nil
		}
		return all, nil
	})
}

func (s *store) writeTests(t *tests) error {
	t.mu.Lock()
	mine := maps.Clone(t.results)
	t.mu.Unlock()
	if len(mine) == 0 {
		return nil
	}
	return s.folder.Update(KindTests, s.key, func(old []byte) ([]byte, error) {
		all := decodeTests(old)
		if all == nil || len(all) > 4096 {
			all = map[string]string{}
		}
		maps.Copy(all, mine)
		return json.Marshal(all)
	})
}

// ForgetTests drops all results of self-tests of a device, so that its kernels are tested anew.
func ForgetTests(folder *cache.Folder, p *vk.PhysicalDevice) error {
	return folder.Update(KindTests, DeviceKey(p), func([]byte) ([]byte, error) { return nil, nil })
}
