// Halves in tiles of 128 rows × 32 columns, row after row, tile after tile along K: what a workgroup
// of mul_mat_cm reads at a time lies in one run. K is padded with zeros to whole steps of 64.

const uint TILE_ROWS = 128, TILE_COLS = 32;
const uint TILE_VECS = TILE_ROWS * TILE_COLS / 8; // of 8 halves

uint padded(uint K) { return (K + 63) / 64 * 64; }

// tile_vec numbers the run of 8 halves that holds column k of a row.
uint tile_vec(uint row, uint k, uint K)
{
    uint tile = row / TILE_ROWS * (padded(K) / TILE_COLS) + k / TILE_COLS;
    return tile * TILE_VECS + row % TILE_ROWS * (TILE_COLS / 8) + k % TILE_COLS / 8;
}
