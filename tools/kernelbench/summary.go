package main

import (
	"fmt"
	"io"
	"slices"

	"leat/internal/kernels"
)

// summary keeps the samples of each tile and split of a kernel, type and shape.
type summary struct {
	order []point // without tiles and splits
	tiles map[point][]tileRate
}

type tileRate struct {
	tile  kernels.Tile
	split kernels.CMTile
	rates []float64 // of the ceiling
	work  float64   // TFLOP/s at the ceiling, 0 where that is not what counts
}

func (s *summary) add(p point, rate, work float64) {
	tile, split := p.tile, p.split
	p.tile, p.split = kernels.Tile{}, kernels.CMTile{}
	if s.tiles == nil {
		s.tiles = map[point][]tileRate{}
	}
	list := s.tiles[p]
	if list == nil {
		s.order = append(s.order, p)
	}
	if last := len(list) - 1; last < 0 || list[last].tile != tile || list[last].split != split {
		list = append(list, tileRate{tile: tile, split: split, work: work})
	}
	last := &list[len(list)-1]
	last.rates = append(last.rates, rate)
	s.tiles[p] = list
}

// print names the three fastest of each by their median.
func (s *summary) print(w io.Writer) {
	for _, p := range s.order {
		list := s.tiles[p]
		for i := range list {
			slices.Sort(list[i].rates)
		}
		median := func(t tileRate) float64 { return t.rates[len(t.rates)/2] }
		slices.SortStableFunc(list, func(a, b tileRate) int {
			if median(a) > median(b) {
				return -1
			}
			return 1
		})
		fmt.Fprintf(w, "# %-60v", p)
		for _, t := range list[:min(3, len(list))] {
			if t.tile != (kernels.Tile{}) {
				fmt.Fprintf(w, "  %s", tileName(t.tile))
			}
			if t.split != (kernels.CMTile{}) {
				fmt.Fprintf(w, "  %s", t.split)
			}
			fmt.Fprintf(w, " %5.1f %%", 100*median(t))
			if t.work > 0 {
				fmt.Fprintf(w, " (%.4g TFLOP/s)", t.work*median(t))
			}
		}
		fmt.Fprintln(w)
	}
}
