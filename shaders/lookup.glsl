// The lookup of a layer's chosen experts in the table of experts in VRAM, for lookup_experts and the variants of topk_moe. See LookupExpertsArgs.

shared uint absent;

struct Lookup {
    uvec2 go, told; // where the results are written, see LookupExpertsArgs
};

Lookup lookup_at(uvec2 at) { return Lookup(Words2(at).w[0], Words2(at).w[1]); }

void lookup_begin(uint lane)
{
    if (lane == 0)
        absent = 0;
}

bool is_resident(uvec2 at, uint expert)
{
    uvec2 matrix = Words2(at).w[RESIDENTS_HEAD + expert];
    return (matrix.x | matrix.y) != 0;
}

// lookup_one notes the i'th expert and whether it is resident, once all lanes have begun.
void lookup_one(Lookup to, uint i, uint expert, bool resident)
{
    if (!resident)
        atomicOr(absent, 1);
    OutWords(to.told).w[1 + i] = expert;
}

void lookup_end(Lookup to, uint lane)
{
    barrier();
    if (lane == 0) {
        uint all = absent == 0 ? 1 : 0;
        OutWords(to.go).w[0] = all;
        OutWords(to.told).w[0] = all;
    }
}
