// What norms a row, to the same bits in each kernel that includes this: no compiler may fuse its products and sums.

float sum_squares(vec4 v)
{
    precise vec4 q = v * v;
    precise float sum = (q.x + q.y) + (q.z + q.w);
    return sum;
}

// norm_scale is 1 / sqrt of the mean of cols squares, with eps.
float norm_scale(float squares, uint cols, float eps)
{
    precise float mean = squares / float(cols);
    precise float scale = 1.0 / sqrt(mean + eps);
    return scale;
}

vec4 normed_run(vec4 v, float scale, vec4 w)
{
    precise vec4 y = v * scale * w;
    return y;
}
