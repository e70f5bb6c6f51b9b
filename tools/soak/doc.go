// Command soak generates the same text over and over for a given time, while weights
// stream, and says whether anything grows or slows down.
package main
