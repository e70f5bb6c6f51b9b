// Types with one reader for all kernels. A value is (b - ZERO) * s: b a signed byte, s one float for a run of 16 values. Every w_*.glsl gives BLOCK,
// BLOCK_BYTES, ZERO and
//   struct Chunk                                    the bytes of two runs
//   Chunk load_chunk(Row w, uint i)                 those of chunk i, loads alone
//   uvec4 run(Chunk c, uint i, uint r, out float s) the bytes b of run r, 0 or 1, and their s
// and, but where IN_ORDER says that the runs follow each other in the row,
//   uint first_of(uint i), second_of(uint i)        where the two runs lie in the row
//   uint chunk_of(uint k), run_of(uint k)           the chunk and the run that hold value k

#if defined(TYPE_IQ2_XXS)
#include "w_iq2_xxs.glsl"
#elif defined(TYPE_IQ2_XS)
#include "w_iq2_xs.glsl"
#elif defined(TYPE_IQ2_S)
#include "w_iq2_s.glsl"
#elif defined(TYPE_IQ3_XXS)
#include "w_iq3_xxs.glsl"
#elif defined(TYPE_IQ3_S)
#include "w_iq3_s.glsl"
#elif defined(TYPE_IQ1_S)
#include "w_iq1_s.glsl"
#elif defined(TYPE_IQ1_M)
#include "w_iq1_m.glsl"
#elif defined(TYPE_TQ1_0)
#include "w_tq1_0.glsl"
#elif defined(TYPE_TQ2_0)
#include "w_tq2_0.glsl"
#elif defined(TYPE_NVFP4)
#include "w_nvfp4.glsl"
#elif defined(TYPE_Q1_0)
#include "w_q1_0.glsl"
#elif defined(TYPE_Q2_0)
#include "w_q2_0.glsl"
#endif
