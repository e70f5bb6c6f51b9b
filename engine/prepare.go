package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"leat/decompose/pack"
	"leat/internal/arch"
	"leat/internal/budget"
	"leat/internal/plan"
	"leat/shaders"
	"leat/vk/mem"
)

// prepared is a model before any of its memory is allocated: its file is read, its device is open, its plan is made.
type prepared struct {
	o      Options
	hooks  hooks
	file   *pack.Model
	hyper  *arch.Hyper
	device *device
	budget plan.Budget // that the plan was made for
	plan   *plan.Plan  // its sizes of context and step never change
	shared mem.Shared  // memory in which the device reads weights in place
}

// prepare opens the model at path and a device, and plans the one on the other. What is open after a failure is for the caller to close.
// Between the two it calls read, which may refuse the file.
func (p *prepared) prepare(ctx context.Context, path string, read func(*pack.Model) error) error {
	if err := p.openFile(path); err != nil {
		return err
	}
	if err := read(p.file); err != nil {
		return err
	}
	for l := range p.hyper.Layers {
		if s := &p.hyper.Layers[l]; s.Cache && !p.hyper.Encoder { // an encoder's cache is of F32
			if err := shaders.CheckKV(p.o.kv(), s.KeyLength, s.ValueLength); err != nil {
				return err
			}
		}
	}
	var err error
	if p.device, err = openDevice(&p.o, &p.hooks); err != nil {
		return err
	}
	return p.makePlan(ctx)
}

func (p *prepared) openFile(path string) (err error) {
	if p.file, err = pack.Open(path); err != nil {
		return err
	}
	if p.hyper, err = arch.Read(p.file); err != nil {
		return err
	}
	for _, note := range p.hyper.Notes {
		p.o.Logger.Warn(note, "model", path)
	}
	return nil
}

func (p *prepared) makePlan(ctx context.Context) error {
	request := requestOf(&p.o)
	request.Shared = p.hooks.shared
	on, err := p.examine(ctx, &request)
	if err != nil {
		return err
	}
	p.budget = request.Budget(&on, p.hyper, p.file)
	if p.plan, err = plan.Make(p.hyper, p.file, p.budget); err != nil {
		return err
	}
	if p.plan.InPlace {
		p.shared = on.Shared
	}
	if p.plan.ContextLength > p.hyper.ContextLength {
		p.o.Logger.Warn("context is longer than the model was trained for", "context", p.plan.ContextLength, "trained", p.hyper.ContextLength)
	}
	return nil
}

func (p *prepared) examine(ctx context.Context, w *budget.Request) (budget.Machine, error) {
	if p.hooks.machine != nil {
		return *p.hooks.machine, nil
	}
	return w.ExamineOpen(ctx, p.device.vk, p.o.Logger)
}

// close closes the device and the file.
func (p *prepared) close() error {
	var errs []error
	if p.device != nil {
		errs = append(errs, p.device.close())
	}
	if p.file != nil {
		errs = append(errs, p.file.Close())
	}
	return errors.Join(errs...)
}

// named says what was being done with the model at path when err came up, and with which model unless err says so by itself.
func named(doing, path string, err error) error {
	if strings.HasPrefix(err.Error(), path+": ") {
		return fmt.Errorf("%s %w", doing, err)
	}
	return fmt.Errorf("%s %s: %w", doing, path, err)
}
