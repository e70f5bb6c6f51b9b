// A row attends to the positions from first_seen to last_seen, both included. All of them hold keys and values.
uint first_seen(uint row) { return Words(a.Seen).w[2 * row]; }
uint last_seen(uint row) { return Words(a.Seen).w[2 * row + 1]; }

// lean is what a slope adds to the score of a position: nothing at the last one that the row sees, less the farther a position lies before it. Only the
// differences between a row's scores matter, and these are exact.
float lean(float slope, uint position, uint last)
{
    precise float less = slope * float(int(position) - int(last));
    return less;
}
