package main

import (
	"bytes"
	"io"
	"os"

	"leat/cmd/leat/picture"
	"leat/internal/expertcache"
)

// draw writes the pictures that were asked for.
func (o *options) draw(t *expertcache.Routing, all *table) error {
	if o.title == "" {
		o.title = t.Model
	}
	err := file(o.svg, func(w io.Writer) error { return picture.Rates(w, all.chart(o.title)) })
	if err != nil {
		return err
	}
	return file(o.uses, func(w io.Writer) error {
		uses := expertcache.NewUses(t.Header)
		for _, s := range t.Steps {
			uses.Add(s)
		}
		return picture.Experts(w, picture.ExpertChart{Title: o.title, Uses: uses.Layers()})
	})
}

// file writes a picture, where it has a name.
func file(path string, write func(io.Writer) error) error {
	if path == "" {
		return nil
	}
	var svg bytes.Buffer
	if err := write(&svg); err != nil {
		return err
	}
	return os.WriteFile(path, svg.Bytes(), 0o644)
}

// chart has a line for each policy.
func (t *table) chart(title string) picture.RateChart {
	c := picture.RateChart{Title: title}
	for i := range t.Rows[0].Results {
		l := picture.RateLine{Name: t.Rows[0].Results[i].Policy, Bound: i == len(t.Rows[0].Results)-1}
		for _, r := range t.Rows {
			l.Rates = append(l.Rates, picture.Rate{Size: r.Share, Hits: t.rate(&r.Results[i])})
		}
		c.Lines = append(c.Lines, l)
	}
	return c
}
