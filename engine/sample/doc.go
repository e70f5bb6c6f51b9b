// Package sample turns logits into the next token's id.
package sample
