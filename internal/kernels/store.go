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
	KindPipelines = "pipelines" // the driver's pipeline cache
	KindTests     = "tests"     // results of self-tests
	KindTunes     = "tunes"     // tuned choices, see [Tuned]
)

// DeviceKey identifies a device with its driver version. Cached files are valid only for the same key.
func DeviceKey(p *vk.PhysicalDevice) string {
	return fmt.Sprintf("%s/%#x/%x", p.UUID, p.DriverVersion, p.CacheUUID)
}

// store reads and writes the cached files of one device. A nil store keeps nothing.
type store struct {
	folder  *cache.Folder     // the cache's folder
	key     string            // [DeviceKey]
	log     *slog.Logger      // gets errors of reading and writing
	cache   *vk.PipelineCache // the driver's pipeline cache; nil: there is none
	dirty   atomic.Bool       // there are results or pipelines that are not written yet
	writes  sync.WaitGroup    // waits for the goroutines of [Kernels.SaveInBackground]
	writing sync.Mutex        // held while files are written
}

// openStore makes the store of a device, with the driver's pipeline cache in folder. It never fails: it treats a file that can't be read as absent.
// It returns nil if folder is nil.
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

// pipelines is the driver's pipeline cache; nil: none.
func (s *store) pipelines() *vk.PipelineCache {
	if s == nil {
		return nil
	}
	return s.cache
}

// markDirty notes that there is something new to write.
func (s *store) markDirty() {
	if s != nil {
		s.dirty.Store(true)
	}
}

// loadTests returns the test results of earlier runs by testID: "" if the test passed, else why it failed.
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

// decodeTests reads a file of test results; a damaged file is read as empty.
func decodeTests(data []byte) map[string]string {
	var m map[string]string
	if json.Unmarshal(data, &m) != nil {
		return nil
	}
	return m
}

// SaveInBackground starts a goroutine that writes new pipelines, test results and crashes to the cache, if there are any.
func (k *Kernels) SaveInBackground() {
	if s := k.store; s != nil && s.dirty.Swap(false) {
		s.writes.Go(func() { s.write(k) })
	}
}

// close waits for writes under way, writes what is new, and frees the driver's pipeline cache.
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

// write merges pipelines, test results and crashes into the files, which other processes write too. It logs an error and goes on.
func (s *store) write(k *Kernels) {
	s.writing.Lock()
	defer s.writing.Unlock()
	err := errors.Join(s.writePipelines(), s.writeTests(&k.tested), k.guard.save())
	if err != nil {
		s.log.Info("kernels are not kept for the next run", "error", err)
	}
}

// writePipelines merges the driver's pipeline cache into its file. If the merged cache is too large, or can't be merged, it writes only this run's.
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
		if err != nil || len(all) > cache.MaxBytes/2 { // most of it is from old versions of the program
			return own, nil
		}
		return all, nil
	})
}

// writeTests merges all test results of this run into the file of test results.
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

// ForgetTests deletes the results of a device's self-tests, so that its kernels are tested anew.
func ForgetTests(folder *cache.Folder, p *vk.PhysicalDevice) error {
	return folder.Update(KindTests, DeviceKey(p), func([]byte) ([]byte, error) { return nil, nil })
}
