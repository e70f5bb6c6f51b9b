// Package predict says how fast a plan will run on a machine.
//
// A machine is its [Speeds]: measured by package calibrate, or estimated from a data sheet of
// package gpus by [FromDataSheet]. [Plan] turns them and a plan into the seconds of a prompt and of a token, by
// letting the work of each unit flow through three lanes: disk, link and compute.
//
// Unstable: importable by our own commands and tools, no promise to others.
package predict
