// The tile of a product in teams: TEAM lanes of a workgroup's LANES make NUM_ROWS x NUM_COLS sums, and each has UNROLL loads of a row under way.

layout(constant_id = 0) const uint LANES = DEFAULT_LANES;
#define LANES_ID 0
#include "memory.glsl"
#include "subgroup.glsl"

layout(constant_id = 1) const uint NUM_ROWS = DEFAULT_NUM_ROWS;
layout(constant_id = 2) const uint NUM_COLS = DEFAULT_NUM_COLS;
layout(constant_id = 3) const uint TEAM = DEFAULT_TEAM;
layout(constant_id = 4) const uint UNROLL = DEFAULT_UNROLL;
