// Command streambench measures how fast weights stream: what the link and the disk can
// do by themselves, and what decoding makes of them within budgets.
package main
