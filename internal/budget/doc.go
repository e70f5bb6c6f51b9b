// Package budget decides how much of a machine's memory a model may take: what
// was asked for, within what the machine has free.
//
// It is the one place that decides this, for the engine that loads a model and
// for the commands that say how a model will run.
package budget
