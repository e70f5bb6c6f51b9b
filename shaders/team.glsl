// The frame of a mul_mat_vec in teams: who makes which outputs, and how a team's lanes meet.
// TEAM lanes make NUM_ROWS × NUM_COLS outputs, each lane a part of every sum.

const uint OUTPUTS = NUM_ROWS * NUM_COLS;
const uint TEAMS = LANES / TEAM;
const uint MAX_SUBGROUPS = LANES / 4;
shared float partial[OUTPUTS * MAX_SUBGROUPS]; // (OUTPUTS, subgroups), where a team is more than one

float acc[NUM_ROWS][NUM_COLS];
uint lane, member; // of the workgroup, of the team
uint row0, col0;   // of the team's outputs

// team_begin is false for the workgroups of a grid that are too many.
bool team_begin()
{
    uint colBlocks = (a.N + NUM_COLS - 1) / NUM_COLS;
    uint rowBlocks = (a.M + NUM_ROWS * TEAMS - 1) / (NUM_ROWS * TEAMS);
    lane = subgroup_lane();
    member = lane % TEAM;
    row0 = (group() / colBlocks * TEAMS + lane / TEAM) * NUM_ROWS;
    col0 = group() % colBlocks * NUM_COLS;
    [[unroll]] for (uint r = 0; r < NUM_ROWS; r++)
        [[unroll]] for (uint c = 0; c < NUM_COLS; c++)
            acc[r][c] = 0;
    return group() < rowBlocks * colBlocks;
}

// Rows and columns past the edge repeat the last one; store drops them.
uint team_row(uint r) { return min(row0 + r, a.M - 1); }
uint team_col(uint c) { return min(col0 + c, a.N - 1); }

void store(uint o, float sum)
{
    uint m = row0 + o % NUM_ROWS, n = col0 + o / NUM_ROWS;
    if (m < a.M && n < a.N)
        Floats(advance(a.Dst, n, a.DstStride * 4)).f[m] = sum;
}

void team_end()
{
    if (TEAM <= gl_SubgroupSize) {
        [[unroll]] for (uint o = 0; o < OUTPUTS; o++) {
            float sum = sum_within(acc[o % NUM_ROWS][o / NUM_ROWS], TEAM);
            if (member == o % TEAM)
                store(o, sum);
        }
        return;
    }
    [[unroll]] for (uint o = 0; o < OUTPUTS; o++) {
        float sum = sum_within(acc[o % NUM_ROWS][o / NUM_ROWS], gl_SubgroupSize);
        if (gl_SubgroupInvocationID == 0)
            partial[o * MAX_SUBGROUPS + gl_SubgroupID] = sum;
    }
    barrier();
    uint parts = TEAM / gl_SubgroupSize;
    for (uint o = member; o < OUTPUTS; o += TEAM) {
        float sum = 0;
        for (uint p = 0; p < parts; p++)
            sum += partial[o * MAX_SUBGROUPS + lane / TEAM * parts + p];
        store(o, sum);
    }
}
