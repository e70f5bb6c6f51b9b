// Package step runs one step: a forward pass over a batch of rows, each a token at a position of some sequence.
//
// A step goes through the plan's units in order ([pass.forward]). For each unit it asks package weights where the unit is,
// records the unit's operations by package record, and gives the unit's memory back. Package experts runs the layers' experts,
// and package submit submits all commands to the device. A row's logits do not depend on the other rows of its step.
package step
