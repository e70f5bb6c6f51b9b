// Package predict says how fast a plan will run on a machine.
//
// A machine is its [Speeds]: measured by package calibrate, or estimated from a data sheet of
// package gpus by [FromDataSheet]. [Plan] turns speeds and a plan into the time of a prompt and of a token: it
// simulates how the work of each unit passes through three lanes, disk, link and device.
//
// Unstable: importable by our own commands and tools, no promise to others.
package predict
