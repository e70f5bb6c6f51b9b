package main

func (r *bencher) draw() error { return nil }
