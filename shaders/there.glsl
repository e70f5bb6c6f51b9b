// Whether all of a layer's chosen experts are there: what experts_there and the variants of topk_moe share. See ExpertsThereArgs.

shared uint absent;

struct There {
    uvec2 go, told; // where to say it
};

There there_at(uvec2 at) { return There(Words2(at).w[0], Words2(at).w[1]); }

void there_begin(uint lane)
{
    if (lane == 0)
        absent = 0;
}

bool there_has(uvec2 at, uint expert)
{
    uvec2 matrix = Words2(at).w[THERE_HEAD + expert];
    return (matrix.x | matrix.y) != 0;
}

// there_one takes the i'th expert, once all lanes have begun.
void there_one(There to, uint i, uint expert, bool here)
{
    if (!here)
        atomicOr(absent, 1);
    OutWords(to.told).w[1 + i] = expert;
}

void there_end(There to, uint lane)
{
    barrier();
    if (lane == 0) {
        uint all = absent == 0 ? 1 : 0;
        OutWords(to.go).w[0] = all;
        OutWords(to.told).w[0] = all;
    }
}
