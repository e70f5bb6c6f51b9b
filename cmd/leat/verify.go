package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"leat/decompose/pack"
)

func init() { commands = append(commands, newVerifyCmd) }

const verifyLong = `Read every file of a pack and compare its size and SHA-256 with manifest.json.

Exit status:
  0    every file is as it was written
  1    a file is damaged or missing, or the folder is no pack; stderr names each
  2    the command line is wrong
  130  interrupted`

// verifyReport is what --json prints, damaged or not.
type verifyReport struct {
	Pack    string         `json:"pack"`
	OK      bool           `json:"ok"`
	Files   int            `json:"files"`
	Bytes   int64          `json:"bytes"`
	Seconds float64        `json:"seconds"`
	Damaged []verifyDamage `json:"damaged"`
}

type verifyDamage struct {
	File string `json:"file"`
	What string `json:"what"`
}

func newVerifyCmd(a *app) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "verify PACK",
		Short:   "Check a pack's files against its checksums",
		Long:    verifyLong,
		Example: "  leat verify packs/llama-70b\n  leat verify packs/qwen3 --json",
		Args:    wants("PACK"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, err := os.Stat(args[0]); err != nil {
				return withHint(fmt.Errorf("find the pack: %w", err), "\"leat decompose IN.gguf OUTDIR\" makes one")
			}
			r := &verifyReport{Pack: args[0], Damaged: []verifyDamage{}}
			start := time.Now()
			bar := &stageBar{app: a}
			err := pack.Verify(cmd.Context(), args[0], func(done, total int64) { bar.set("verify", done, total) })
			bar.close()
			r.Seconds = time.Since(start).Seconds()
			var damage *pack.DamageError
			if err != nil && !errors.As(err, &damage) {
				return err
			}
			if m, e := pack.ReadManifest(args[0]); e == nil {
				r.Files, r.Bytes = len(m.Files), m.TotalBytes
			}
			return r.finish(a, asJSON, damage)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the result as JSON")
	return cmd
}

func (r *verifyReport) finish(a *app, asJSON bool, damage *pack.DamageError) error {
	r.OK = damage == nil
	if damage != nil {
		for _, d := range damage.Files {
			r.Damaged = append(r.Damaged, verifyDamage{d.Name, d.What})
		}
	}
	if asJSON {
		if err := a.printJSON(r); err != nil {
			return err
		}
	}
	if damage != nil {
		return damage
	}
	if asJSON {
		return nil
	}
	_, err := fmt.Fprintf(a.out, "%s: %d files, %s, all as written, %.1f s\n", r.Pack, r.Files, formatSize(r.Bytes), r.Seconds)
	return err
}
