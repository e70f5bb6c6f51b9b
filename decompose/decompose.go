package decompose

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"leat/decompose/pack"
)

// Options tells [Run] what to do beside copying. The zero value is a good start.
type Options struct {
	Check       func(*pack.Model) error // says why a model is not to be decomposed, before anything is written; nil: every one is
	Finite      bool                    // refuse a source with NaN or infinities among its numbers, as a [*NotFiniteError]
	Verify      bool                    // read pack and source again and compare, before the pack gets its name
	Stripe      []string                // folders, on other drives, that the large files' bytes alternate with; made, as OUTDIR is
	StripeBytes int64                   // that lie in one of these folders together, a multiple of 4096; 0: 8 MiB
	Progress    func(Progress)          // may be nil; called by one goroutine at a time
	Logger      *slog.Logger            // nil: silent
}

// Stage names what is going on.
type Stage string

const (
	StageCopy   Stage = "copy"
	StageVerify Stage = "verify"
)

// Progress says how far a stage is, in bytes of the pack.
type Progress struct {
	Stage       Stage
	Done, Total int64
	Resumed     int64 // of Done: written by an earlier run
}

// hooks are the calls that can fail on a full or broken disk; tests make them fail.
type hooks struct {
	write   func(f *os.File, p []byte) error
	sync    func(f *os.File) error
	syncDir func(dir string) error
	free    func(dir string) (int64, error)
}

func defaultHooks() *hooks {
	return &hooks{
		write:   func(f *os.File, p []byte) error { _, err := f.Write(p); return err },
		sync:    func(f *os.File) error { return f.Sync() },
		syncDir: syncDir,
		free:    freeBytes,
	}
}

// Run writes the GGUF at in (any shard) as a pack to outdir, which must not exist. It works in
// outdir.partial and gives the folder its name when all is on disk; canceled, killed or failed,
// it takes up from there the next time. The manifest it returns is the one written.
func Run(ctx context.Context, in, outdir string, o Options) (*pack.Manifest, error) {
	return run(ctx, in, outdir, o, defaultHooks())
}

func run(ctx context.Context, in, outdir string, o Options, h *hooks) (*pack.Manifest, error) {
	outdir = filepath.Clean(outdir)
	if err := checkNames(in, outdir); err != nil {
		return nil, err
	}
	j := &job{o: o, hooks: h}
	defer j.close()
	m, err := j.run(ctx, in, outdir)
	if err == nil {
		return m, nil
	}
	kept := j.abandon(err)
	return nil, explain(fmt.Errorf("decompose %s: %w", in, err), outdir+pack.PartialSuffix, kept)
}

func checkNames(in, outdir string) error {
	if info, err := os.Stat(in); err == nil && info.IsDir() {
		hint := "a pack is decomposed already: use it as it is"
		if _, err := os.Stat(filepath.Join(in, pack.ManifestName)); err != nil {
			hint = pack.FolderHint(in)
		}
		return &hinted{fmt.Errorf("decompose %s: found a folder, wanted a GGUF file", in), hint}
	}
	if strings.HasSuffix(outdir, pack.PartialSuffix) {
		return &hinted{fmt.Errorf("write %s: found a name that ends in %s, which marks unfinished packs", outdir, pack.PartialSuffix), "name another OUTDIR"}
	}
	return checkAbsent(outdir)
}

// job is one run.
type job struct {
	o       Options
	hooks   *hooks
	src     *pack.Model
	layout  *layout
	partial *partial

	mu       sync.Mutex // guards progress
	progress Progress
}

// open opens the model and checks that a pack can be made of it.
func (j *job) open(in string) (err error) {
	if j.src, err = pack.Open(in); err != nil {
		return err
	}
	if len(j.src.Units) == 0 {
		return fmt.Errorf("found no tensors in %s, wanted a model's (a vocabulary alone needs no pack)", in)
	}
	if j.o.Check != nil {
		return j.o.Check(j.src)
	}
	return nil
}

func (j *job) run(ctx context.Context, in, outdir string) (*pack.Manifest, error) {
	err := j.open(in)
	if err != nil {
		return nil, err
	}
	if j.layout, err = newLayout(j.src); err != nil {
		return nil, err
	}
	stripe, err := newStripe(j.layout, outdir, &j.o)
	if err != nil {
		return nil, err
	}
	if stripe != nil {
		if err := j.layout.spread(stripe); err != nil {
			return nil, err
		}
	}
	if j.partial, err = openPartial(outdir, j.hooks); err != nil {
		return nil, err
	}
	j.partial.stripe = stripe
	anew, err := j.partial.resume(j.layout)
	if err != nil {
		return nil, err
	}
	if err := j.partial.openFolders(j.layout); err != nil {
		return nil, err
	}
	if anew != "" {
		j.log().Warn("decompose starts anew: "+anew, "folder", j.partial.dir)
	}
	if err := j.checkSpace(); err != nil {
		return nil, err
	}
	if err := j.copyFiles(ctx); err != nil {
		return nil, err
	}
	if j.o.Verify {
		if err := j.compare(ctx); err != nil {
			return nil, err
		}
	}
	if err := j.checkSource(); err != nil {
		return nil, err
	}
	if err := j.writeManifest(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return j.layout.manifest, j.partial.publish(outdir)
}

// checkSource refuses a pack of a file that was written to meanwhile (a download under way).
func (j *job) checkSource() error {
	now, err := identify(j.src.Files)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrSource, err)
	}
	for i, id := range now {
		if id != j.layout.sources[i] {
			return fmt.Errorf("%s: %w", j.src.Files[i], ErrSource)
		}
	}
	return nil
}

// writeManifest comes when all else is on disk. Its content passes the reader's own check first.
func (j *job) writeManifest() error {
	data, err := j.layout.manifest.Encode()
	if err != nil {
		return err
	}
	if _, err := pack.ParseManifest(data); err != nil {
		return fmt.Errorf("check our own manifest: %w", err)
	}
	f, err := j.partial.create(j.partial.dir, pack.ManifestName)
	if err != nil {
		return err
	}
	if err := j.hooks.write(f, data); err != nil {
		f.Close()
		return err
	}
	_, err = j.partial.finish(f, j.partial.dir, pack.ManifestName)
	return err
}

// abandon decides what stays after an error: nothing, where the source can't be trusted or no file
// was finished; else the folder, for a resume.
func (j *job) abandon(err error) (kept bool) {
	if j.partial == nil {
		return false
	}
	if j.partial.journal == nil { // the last step failed
		_, err := os.Lstat(j.partial.dir)
		return err == nil
	}
	for _, f := range j.layout.files {
		kept = kept || f.finished
	}
	if errors.Is(err, ErrSource) || !kept {
		j.partial.remove()
		return false
	}
	return true
}

func (j *job) close() {
	if j.partial != nil {
		j.partial.close()
	}
	if j.src != nil {
		j.src.Close()
	}
}

func (j *job) log() *slog.Logger {
	if j.o.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return j.o.Logger
}

// begin starts a stage, advance goes on with it.
func (j *job) begin(s Stage, resumed, total int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.progress = Progress{Stage: s, Done: resumed, Total: total, Resumed: resumed}
	j.report()
}

func (j *job) advance(n int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.progress.Done += int64(n)
	j.report()
}

func (j *job) report() {
	if j.o.Progress != nil {
		j.o.Progress(j.progress)
	}
}
