package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"leat/decompose"
	"leat/decompose/pack"
)

func init() { commands = append(commands, newDecomposeCmd) }

const decomposeLong = `Write the model in a GGUF file (any shard of it) as a pack: a folder with one file
for each layer, ready to be streamed from the disk. The GGUF stays as it is and is not
needed afterwards. "leat run" takes a GGUF as well; a pack reads faster, as each layer
is one read at an aligned place.

A model that leat can't run is refused before anything is written; --force takes it.

The work is done in OUTDIR.partial, which gets its name when all is on disk. After an
interruption the same command goes on where it stopped. OUTDIR must not exist.

--stripe DIR2 spreads the large files over two drives: their bytes lie, 8 MiB at a time,
in OUTDIR and in DIR2 by turns, and are read from both at once. DIR2 is made, as OUTDIR is,
and must stay where it is. --stripe DIR2,DIR3 makes it three.

Exit status:
  0    OUTDIR is a whole pack
  1    it failed, and there is no OUTDIR; stderr says why and what may be resumed
  2    the command line is wrong
  130  interrupted; the same command goes on`

const decomposeExample = `  leat decompose llama-3.1-70b-q4_k_m.gguf packs/llama-70b
  leat decompose qwen3-30b-a3b-q4_k_m-00001-of-00002.gguf packs/qwen3 --verify
  leat decompose llama-3.1-70b-q4_k_m.gguf /nvme0/llama-70b --stripe /nvme1/llama-70b
  leat decompose demo demo-pack --json`

// decomposeReport is what --json prints.
type decomposeReport struct {
	Pack         string   `json:"pack"`
	Stripe       []string `json:"stripe,omitempty"` // the other folders
	Files        int      `json:"files"`            // beside manifest.json
	Bytes        int64    `json:"bytes"`            // theirs
	ResumedBytes int64    `json:"resumed_bytes"`
	Seconds      float64  `json:"seconds"`
	BytesPerSec  float64  `json:"bytes_per_second"` // of what this run wrote
	Verified     bool     `json:"verified"`
}

func newDecomposeCmd(a *app) *cobra.Command {
	var verify, force, asJSON bool
	var stripe []string
	cmd := &cobra.Command{
		Use:     "decompose IN.gguf OUTDIR",
		Short:   "Write a GGUF as a pack: one file for each layer",
		Long:    decomposeLong,
		Example: decomposeExample,
		Args:    wants("IN.gguf", "OUTDIR"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o := decompose.Options{Verify: verify, Stripe: stripe, Logger: a.log, Check: a.runs, Finite: !force}
			if force {
				o.Check = nil
			}
			report, err := a.decompose(cmd.Context(), args[0], args[1], o)
			if err != nil {
				return err
			}
			if asJSON {
				return a.printJSON(report)
			}
			return report.print(a)
		},
	}
	cmd.Flags().StringSliceVar(&stripe, "stripe", nil, "folders on other drives to alternate the large files' bytes with, so that all drives read at once")
	cmd.Flags().BoolVar(&verify, "verify", false, "read pack and GGUF again and compare every byte")
	cmd.Flags().BoolVar(&force, "force", false, "decompose a model that leat can't run, or that holds NaN, too")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the summary as JSON")
	return cmd
}

// runs says why leat can't run a model.
func (a *app) runs(m *pack.Model) error {
	_, err := a.examine(m)
	if err == nil {
		return nil
	}
	hint := "leat can't run this model, so it makes no pack of it; --force makes one all the same"
	if own := hintFor(err); own != "" {
		hint = own + "; " + hint
	}
	return withHint(err, "%s", hint)
}

func (a *app) decompose(ctx context.Context, in, outdir string, o decompose.Options) (*decomposeReport, error) {
	in, err := modelPath(in)
	if err != nil {
		return nil, err
	}
	report := &decomposeReport{Pack: outdir, Stripe: o.Stripe, Verified: o.Verify}
	start := time.Now()
	bar := &stageBar{app: a}
	o.Progress = func(p decompose.Progress) {
		if p.Stage == decompose.StageCopy {
			report.ResumedBytes = p.Resumed
			report.Seconds = time.Since(start).Seconds()
		}
		bar.set(string(p.Stage), p.Done, p.Total)
	}
	m, err := decompose.Run(ctx, in, outdir, o)
	bar.close()
	if err != nil {
		var hinted interface{ Hint() string }
		if ctx.Err() != nil && errors.Is(err, context.Canceled) && errors.As(err, &hinted) {
			printLines(a.err, "leat: ", hinted.Hint()) // report says no more than "interrupted"
		}
		return nil, err
	}
	report.fill(m, time.Since(start))
	return report, nil
}

// fill works the figures out. The rate is the copy's, or of all the work where the last sync took
// longer than the copy.
func (r *decomposeReport) fill(m *pack.Manifest, took time.Duration) {
	r.Files, r.Bytes = len(m.Files), m.TotalBytes
	copySeconds := r.Seconds
	r.Seconds = took.Seconds()
	if !r.Verified {
		copySeconds = r.Seconds
	}
	if copySeconds > 0 {
		r.BytesPerSec = float64(r.Bytes-r.ResumedBytes) / copySeconds
	}
}

func (r *decomposeReport) print(a *app) error {
	text := fmt.Sprintf("%s: %d files, %s in %.1f s", r.Pack, r.Files, formatSize(r.Bytes), r.Seconds)
	if r.ResumedBytes > 0 {
		text += fmt.Sprintf(" (%s were there already)", formatSize(r.ResumedBytes))
	}
	if r.BytesPerSec > 0 {
		text += ", written at " + formatRate(r.BytesPerSec)
	}
	if r.Verified {
		text += ", verified"
	}
	_, err := fmt.Fprintln(a.out, text)
	return err
}

// stageBar is one progress bar after the other.
type stageBar struct {
	app   *app
	stage string
	bar   *progress
}

func (s *stageBar) set(stage string, done, total int64) {
	if s.bar == nil || s.stage != stage {
		s.close()
		s.stage, s.bar = stage, s.app.progress(stage, total)
	}
	s.bar.Set(done)
}

func (s *stageBar) close() {
	if s.bar != nil {
		s.bar.Close()
		s.bar = nil
	}
}
