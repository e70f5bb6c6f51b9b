// Package examples holds small programs over leat's Go API, each in a folder of its own.
//
// It is a module apart, as a program that embeds leat is: go.mod's replace stands for the
// version that such a program would require.
package examples
