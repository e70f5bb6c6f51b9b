// Command streambench measures what the link and the disk can do by themselves, over
// queues, depths and sizes: where the defaults of streaming come from.
package main
