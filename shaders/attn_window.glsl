// first_seen is the first position that a row at position `pos` attends to: with a window the Window-th from the end.
uint first_seen(uint pos) { return a.Window > 0 && pos >= a.Window ? pos - a.Window + 1 : 0; }
