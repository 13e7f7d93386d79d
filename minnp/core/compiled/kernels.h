/* Part of team.c. Kernels over the rows of arrays of floats in C order, which threads share: softmax, normalisations,
   activations, sums, max pooling, Adam. core/cpu/kernels.py calls them; Python has the same in NumPy. */
#define SEGMENT 2048 /* elements that stay in the nearest cache over the passes of a kernel */
typedef struct { int64_t n, rows; float *a[9]; double number[9]; } Rows;
typedef void (*RowsKernel)(const Rows *r, int64_t first, int64_t many); /* of the rows, or of the columns */

INLINE void add_up(float *part, const float *a, const float *b, int64_t n) { /* a, or a b, in 16 sums */
    int64_t k = 0;
    for (; k + 16 <= n; k += 16)
        for (int j = 0; j < 16; j++)
            part[j] += b ? a[k + j] * b[k + j] : a[k + j];
    for (int j = 0; k < n; k++, j++)
        part[j] += b ? a[k] * b[k] : a[k];
}

INLINE void add_products(float *part, const float *a, const float *b, float less, int64_t n) { /* a (b - less) */
    int64_t k = 0;
    for (; k + 16 <= n; k += 16)
        for (int j = 0; j < 16; j++)
            part[j] += a[k + j] * (b[k + j] - less);
    for (int j = 0; k < n; k++, j++)
        part[j] += a[k] * (b[k] - less);
}

INLINE void add_squares(float *part, const float *a, float less, int64_t n) { /* (a - less)^2 */
    int64_t k = 0;
    for (; k + 16 <= n; k += 16)
        for (int j = 0; j < 16; j++)
            part[j] += (a[k + j] - less) * (a[k + j] - less);
    for (int j = 0; k < n; k++, j++)
        part[j] += (a[k] - less) * (a[k] - less);
}

INLINE float folded(const float *part) {
    float half[8];
    for (int j = 0; j < 8; j++)
        half[j] = part[j] + part[j + 8];
    return ((half[0] + half[4]) + (half[1] + half[5])) + ((half[2] + half[6]) + (half[3] + half[7]));
}

INLINE float total(const float *a, const float *b, int64_t n) { /* the sum of a, or of a b */
    float part[16] = {0};
    if (n >= 16)
        return add_up(part, a, b, n), folded(part);
    for (int64_t k = 0; k < n; k++)
        part[0] += b ? a[k] * b[k] : a[k];
    return part[0];
}

INLINE void exponentials(const float *x, float *y, int64_t n) { /* of what is not positive */
    INDEPENDENT
    for (int64_t k = 0; k < n; k++) {
        float e = exp_of(x[k] < -87.0f ? -87.0f : x[k]);
        y[k] = x[k] < -87.0f ? 0.0f : e;
    }
}

/* y = x less its row's largest element, which is taken for 0 where it is -infinity */
INLINE void centered(const float *x, float *y, int64_t rows, int64_t n) {
    for (int64_t i = 0; i < rows; i++, x += n, y += n) {
        float most[16], top = -INFINITY;
        int64_t at = 0;
        for (int j = 0; j < 16; j++)
            most[j] = -INFINITY;
        for (; at + 16 <= n; at += 16)
            for (int j = 0; j < 16; j++)
                most[j] = x[at + j] > most[j] ? x[at + j] : most[j];
        for (; at < n; at++)
            top = x[at] > top ? x[at] : top;
        for (int j = 0; n >= 16 && j < 16; j++)
            top = most[j] > top ? most[j] : top;
        top = top == -INFINITY ? 0 : top;
        for (int64_t k = 0; k < n; k++)
            y[k] = x[k] - top;
    }
}

FOR_EACH_CPU static void softmax_rows(const Rows *r, int64_t first, int64_t many) {
    int64_t n = r->n, step = n < SEGMENT ? SEGMENT / n : 1;
    for (int64_t i = first, end = first + many; i < end; i += step) {
        int64_t rows = end - i < step ? end - i : step;
        float *y = r->a[1] + i * n;
        centered(r->a[0] + i * n, y, rows, n);
        exponentials(y, y, rows * n);
        for (; rows; rows--, y += n) {
            float sum = total(y, NULL, n);
            for (int64_t k = 0; k < n; k++)
                y[k] /= sum;
        }
    }
}

FOR_EACH_CPU static void log_softmax_rows(const Rows *r, int64_t first, int64_t many) {
    int64_t n = r->n, step = n < SEGMENT ? SEGMENT / n : 1;
    float e[SEGMENT];
    for (int64_t i = first, end = first + many; i < end; i += step) {
        int64_t rows = end - i < step ? end - i : step;
        float *y = r->a[1] + i * n;
        centered(r->a[0] + i * n, y, rows, n);
        if (n <= SEGMENT)
            exponentials(y, e, rows * n);
        for (int64_t j = 0; j < rows; j++, y += n) {
            float sum = n <= SEGMENT ? total(e + j * n, NULL, n) : 0;
            for (int64_t at = 0; n > SEGMENT && at < n; at += SEGMENT) {
                int64_t length = n - at < SEGMENT ? n - at : SEGMENT;
                exponentials(y + at, e, length);
                sum += total(e, NULL, length);
            }
            sum = logf(sum);
            for (int64_t k = 0; k < n; k++)
                y[k] -= sum;
        }
    }
}

FOR_EACH_CPU static void softmax_back_rows(const Rows *r, int64_t first, int64_t many) {
    for (int64_t i = first, n = r->n; i < first + many; i++) {
        const float *g = r->a[0] + i * n, *y = r->a[1] + i * n;
        float *out = r->a[2] + i * n, sum = total(g, y, n);
        for (int64_t k = 0; k < n; k++)
            out[k] = y[k] * (g[k] - sum);
    }
}

FOR_EACH_CPU static void log_softmax_back_rows(const Rows *r, int64_t first, int64_t many) {
    int64_t n = r->n;
    exponentials(r->a[1] + first * n, r->a[2] + first * n, many * n);
    for (int64_t i = first; i < first + many; i++) {
        const float *g = r->a[0] + i * n;
        float *out = r->a[2] + i * n, sum = total(g, NULL, n);
        for (int64_t k = 0; k < n; k++)
            out[k] = g[k] - out[k] * sum;
    }
}

/* x, gamma, beta -> y, mean, variance, 1 / sqrt(variance + number[0]) */
FOR_EACH_CPU static void norm_rows(const Rows *r, int64_t first, int64_t many) {
    const float *gamma = r->a[1], *beta = r->a[2];
    for (int64_t i = first, n = r->n; i < first + many; i++) {
        const float *x = r->a[0] + i * n;
        float *y = r->a[3] + i * n, mean = total(x, NULL, n) / n;
        for (int64_t k = 0; k < n; k++)
            y[k] = x[k] - mean;
        float variance = total(y, y, n) / n, inverse = 1.0f / sqrtf(variance + (float)r->number[0]);
        for (int64_t k = 0; k < n; k++)
            y[k] = y[k] * inverse * gamma[k] + beta[k];
        r->a[4][i] = mean, r->a[5][i] = variance, r->a[6][i] = inverse;
    }
}

/* g, x, gamma, mean, inverse -> the cotangent of x: the mean and the variance move with it */
FOR_EACH_CPU static void norm_back_rows(const Rows *r, int64_t first, int64_t many) {
    for (int64_t i = first, n = r->n; i < first + many; i++) {
        const float *g = r->a[0] + i * n, *x = r->a[1] + i * n, *gamma = r->a[2];
        float mean = r->a[3][i], inverse = r->a[4][i], *out = r->a[5] + i * n;
        float level = total(g, gamma, n) / n, along = 0, part[16] = {0};
        int64_t k = 0;
        for (; k + 16 <= n; k += 16)
            for (int j = 0; j < 16; j++)
                part[j] += g[k + j] * gamma[k + j] * (x[k + j] - mean);
        along = folded(part);
        for (; k < n; k++)
            along += g[k] * gamma[k] * (x[k] - mean);
        along = along * inverse * inverse / n;
        for (k = 0; k < n; k++)
            out[k] = (g[k] * gamma[k] - level - (x[k] - mean) * along) * inverse;
    }
}

/* g, x, mean, inverse -> the cotangents of gamma and of beta */
FOR_EACH_CPU static void norm_sums_columns(const Rows *r, int64_t first, int64_t many) {
    float *restrict gamma = r->a[4] + first, *restrict beta = r->a[5] + first;
    memset(gamma, 0, many * 4), memset(beta, 0, many * 4);
    for (int64_t i = 0; i < r->rows; i++) {
        const float *g = r->a[0] + i * r->n + first, *x = r->a[1] + i * r->n + first;
        float mean = r->a[2][i], inverse = r->a[3][i];
        INDEPENDENT
        for (int64_t k = 0; k < many; k++)
            gamma[k] += g[k] * ((x[k] - mean) * inverse), beta[k] += g[k];
    }
}

/* Of channels: x is [any, rows, S], and a row of these kernels is a channel, of n elements. EACH_PART runs what follows for
   `at`, where each of its `parts` begins. */
#define EACH_PART(c) for (int64_t part = 0, at = (c) * length, step = r->rows * length; part < parts; part++, at += step)
#define WITHIN INDEPENDENT for (int64_t k = at; k < at + length; k++)

/* Batch normalisation: x, gamma, beta -> y, mean, variance, 1 / sqrt(variance + number[1]); number[0]: S */
FOR_EACH_CPU static void channel_norm_rows(const Rows *r, int64_t first, int64_t many) {
    int64_t length = (int64_t)r->number[0], parts = r->n / length;
    const float *restrict x = r->a[0];
    float *restrict y = r->a[3];
    for (int64_t c = first; c < first + many; c++) {
        float sum[16] = {0}, squares[16] = {0};
        EACH_PART(c)
            add_up(sum, x + at, NULL, length);
        float mean = folded(sum) / r->n;
        EACH_PART(c)
            add_squares(squares, x + at, mean, length);
        float variance = folded(squares) / r->n, inverse = 1.0f / sqrtf(variance + (float)r->number[1]);
        float scale = inverse * r->a[1][c], shift = r->a[2][c];
        EACH_PART(c)
            WITHIN y[k] = (x[k] - mean) * scale + shift;
        r->a[4][c] = mean, r->a[5][c] = variance, r->a[6][c] = inverse;
    }
}

/* g, x, gamma, mean, inverse -> the cotangents of x, gamma and beta */
FOR_EACH_CPU static void channel_norm_back_rows(const Rows *r, int64_t first, int64_t many) {
    int64_t length = (int64_t)r->number[0], parts = r->n / length;
    const float *restrict g = r->a[0], *restrict x = r->a[1];
    float *restrict out = r->a[5];
    for (int64_t c = first; c < first + many; c++) {
        float mean = r->a[3][c], inverse = r->a[4][c], sum[16] = {0}, along[16] = {0};
        EACH_PART(c) {
            add_up(sum, g + at, NULL, length);
            add_products(along, g + at, x + at, mean, length);
        }
        float gamma = folded(along) * inverse, beta = folded(sum), scale = inverse * r->a[2][c];
        float level = beta / r->n, slope = gamma / r->n * inverse;
        r->a[6][c] = gamma, r->a[7][c] = beta;
        EACH_PART(c)
            WITHIN out[k] = (g[k] - level - (x[k] - mean) * slope) * scale;
    }
}

/* Batch normalisation of channels in blocks of number[0] = 16, [N, C / 16, S, 16], and then relu where number[3]:
   x, gamma, beta -> y, mean, variance, 1 / sqrt(variance + number[2]); number[1]: 16 S. The mean and the squares of
   segments, while these are in the cache, make up those of all (Chan et al. 1983), so x is read twice. */
#define BLOCK 16
#define LANES for (int j = 0; j < BLOCK; j++)
INLINE float positive(float v) { return v < 0.0f ? 0.0f : v; } /* NaN passes */

FOR_EACH_CPU static void block_norm_rows(const Rows *r, int64_t first, int64_t many) {
    int64_t length = (int64_t)r->number[1], parts = r->n / length;
    int relu = r->number[3] != 0;
    for (int64_t c = first; c < first + many; c++) {
        double middle[BLOCK] = {0}, squares[BLOCK] = {0}, count = 0;
        EACH_PART(c)
            for (int64_t s = 0; s < length; s += SEGMENT) {
                const float *restrict x = r->a[0] + at + s;
                int64_t n = length - s < SEGMENT ? length - s : SEGMENT;
                float sum[BLOCK] = {0}, mean[BLOCK], square[BLOCK] = {0}, rest[BLOCK] = {0};
                for (int64_t k = 0; k < n; k += BLOCK)
                    LANES sum[j] += x[k + j];
                double here = n / BLOCK, all = count + here, share = here / all, weight = count * share;
                LANES mean[j] = sum[j] / (float)here;
                for (int64_t k = 0; k < n; k += BLOCK)
                    LANES square[j] += (x[k + j] - mean[j]) * (x[k + j] - mean[j]);
                for (int64_t k = 0; k < n; k += BLOCK) /* by itself: compilers vectorise a loop of one sum */
                    LANES rest[j] += x[k + j] - mean[j];
                LANES { /* the rest is what rounding left out of the mean */
                    double less = rest[j] / here, off = mean[j] + less - middle[j];
                    middle[j] += off * share;
                    squares[j] += square[j] - less * less * here + off * off * weight;
                }
                count = all;
            }
        float scale[BLOCK], shift[BLOCK], mean[BLOCK];
        LANES {
            int64_t i = c * BLOCK + j;
            float variance = (float)(squares[j] / count), inverse = 1.0f / sqrtf(variance + (float)r->number[2]);
            r->a[4][i] = mean[j] = (float)middle[j], r->a[5][i] = variance, r->a[6][i] = inverse;
            scale[j] = inverse * r->a[1][i], shift[j] = r->a[2][i];
        }
        EACH_PART(c) {
            const float *restrict x = r->a[0] + at;
            float *restrict y = r->a[3] + at;
            if (relu)
                for (int64_t k = 0; k < length; k += BLOCK)
                    LANES y[k + j] = positive((x[k + j] - mean[j]) * scale[j] + shift[j]);
            else
                for (int64_t k = 0; k < length; k += BLOCK)
                    LANES y[k + j] = (x[k + j] - mean[j]) * scale[j] + shift[j];
        }
    }
}

/* x, gamma, beta, mean, inverse, g -> the cotangents of x, which may lie in the place of g, gamma and beta. Where
   number[2], g is that of the relu. */
INLINE void block_norm_back(const Rows *r, int64_t first, int64_t many, const float *given, float *const *out) {
    int64_t length = (int64_t)r->number[1], parts = r->n / length;
    int relu = r->number[2] != 0;
    double count = (double)r->n / BLOCK;
    for (int64_t c = first; c < first + many; c++) {
        double beta[BLOCK] = {0}, gamma[BLOCK] = {0};
        float mean[BLOCK], inverse[BLOCK], scale[BLOCK], shift[BLOCK], level[BLOCK], slope[BLOCK];
        LANES {
            int64_t i = c * BLOCK + j;
            mean[j] = r->a[3][i], inverse[j] = r->a[4][i], scale[j] = inverse[j] * r->a[1][i], shift[j] = r->a[2][i];
        }
        EACH_PART(c)
            for (int64_t s = 0; s < length; s += SEGMENT) {
                const float *x = r->a[0] + at + s, *g = given + at + s;
                int64_t n = length - s < SEGMENT ? length - s : SEGMENT;
                float sum[BLOCK] = {0}, along[BLOCK] = {0};
                for (int64_t k = 0; k < n; k += BLOCK)
                    LANES {
                        float off = x[k + j] - mean[j], flow = g[k + j];
                        flow = relu && !(off * scale[j] + shift[j] > 0.0f) ? flow * 0.0f : flow;
                        sum[j] += flow;
                        along[j] += flow * off;
                    }
                LANES beta[j] += sum[j], gamma[j] += along[j];
            }
        LANES {
            int64_t i = c * BLOCK + j;
            out[1][i] = (float)(gamma[j] * inverse[j]), out[2][i] = (float)beta[j];
            level[j] = (float)(beta[j] / count), slope[j] = (float)(gamma[j] / count * inverse[j] * inverse[j]);
        }
        EACH_PART(c) {
            const float *restrict x = r->a[0] + at;
            const float *g = given + at;
            float *to = out[0] + at;
            for (int64_t k = 0; k < length; k += BLOCK)
                INDEPENDENT
                LANES {
                    float off = x[k + j] - mean[j], flow = g[k + j];
                    flow = relu && !(off * scale[j] + shift[j] > 0.0f) ? flow * 0.0f : flow;
                    to[k + j] = (flow - level[j] - off * slope[j]) * scale[j];
                }
        }
    }
}

FOR_EACH_CPU static void block_norm_back_rows(const Rows *r, int64_t first, int64_t many) {
    block_norm_back(r, first, many, r->a[5], r->a + 6);
}

FOR_EACH_CPU static void block_norm_back_in_place_rows(const Rows *r, int64_t first, int64_t many) {
    block_norm_back(r, first, many, r->a[5], r->a + 5);
}

/* x -> the sum of each channel */
FOR_EACH_CPU static void channel_sums_rows(const Rows *r, int64_t first, int64_t many) {
    int64_t length = (int64_t)r->number[0], parts = r->n / length;
    for (int64_t c = first; c < first + many; c++) {
        float sum[16] = {0};
        EACH_PART(c)
            add_up(sum, r->a[0] + at, NULL, length);
        r->a[1][c] = folded(sum);
    }
}

/* x, numbers -> x with the channel's number */
FOR_EACH_CPU static void channel_add_rows(const Rows *r, int64_t first, int64_t many) {
    int64_t length = (int64_t)r->number[0], parts = r->n / length;
    const float *restrict x = r->a[0];
    float *restrict y = r->a[2];
    for (int64_t c = first; c < first + many; c++) {
        float number = r->a[1][c];
        EACH_PART(c)
            WITHIN y[k] = x[k] + number;
    }
}

/* x -> for each of its rows, which are matrices with number[0] columns, the sum of the matrix's rows: one after the other,
   as NumPy adds them, but of many short ones sixteen at a time. The range is one of sums. */
FOR_EACH_CPU static void sums_columns(const Rows *r, int64_t first, int64_t many) {
    int64_t inner = (int64_t)r->number[0], length = r->n / inner, end = first + many;
    for (int64_t at = first, width; at < end; at += width) {
        const float *x = r->a[0] + at / inner * r->n;
        int64_t from = at % inner, i = 1;
        float *restrict sum = r->a[1] + at;
        width = inner - from < end - at ? inner - from : end - at;
        memcpy(sum, x + from, width * 4);
        if (inner <= 32 && r->n >= 1 << 14) {
            float part[16 * 32] = {0};
            for (; i + 16 <= length; i += 16)
                for (int64_t k = 0; k < 16 * inner; k++)
                    part[k] += x[i * inner + k];
            for (int64_t k = 0; k < 16 * width; k++)
                sum[k % width] += part[k / width * inner + from + k % width];
        }
        for (; i < length; i++)
            INDEPENDENT
            for (int64_t k = 0; k < width; k++)
                sum[k] += x[i * inner + from + k];
    }
}

/* x -> the sum of each row */
FOR_EACH_CPU static void totals_rows(const Rows *r, int64_t first, int64_t many) {
    for (int64_t i = first; i < first + many; i++)
        r->a[1][i] = total(r->a[0] + i * r->n, NULL, r->n);
}

/* x, numbers -> each row of x times its number */
FOR_EACH_CPU static void scaled_rows(const Rows *r, int64_t first, int64_t many) {
    for (int64_t i = first, n = r->n; i < first + many; i++) {
        const float *x = r->a[0] + i * n;
        float *out = r->a[2] + i * n, number = r->a[1][i];
        INDEPENDENT
        for (int64_t k = 0; k < n; k++)
            out[k] = x[k] * number;
    }
}

/* x, one row for number[0] rows of the result -> the rows of x, of which there are number[1], over and over, with it */
INLINE void beside(const Rows *r, int64_t first, int64_t many, char op) {
    int64_t n = r->n, group = (int64_t)r->number[0], period = n < 64 ? 512 / n * n : n, end = first + many;
    float copies[512];
    for (int64_t i = first, rows; i < end; i += rows) {
        rows = group - i % group < end - i ? group - i % group : end - i;
        const float *x = r->a[0] + i % (int64_t)r->number[1] * n, *row = r->a[1] + i / group * n;
        float *out = r->a[2] + i * n;
        for (int64_t k = 0; n < 64 && k < period; k++)
            copies[k] = row[k % n];
        row = n < 64 ? copies : row;
        for (int64_t left = rows * n; left > 0; left -= period, x += period, out += period)
            INDEPENDENT
            for (int64_t k = 0; k < (left < period ? left : period); k++)
                out[k] = op == '+' ? x[k] + row[k] : op == '-' ? x[k] - row[k] : op == '*' ? x[k] * row[k] : row[k] - x[k];
    }
}

FOR_EACH_CPU static void add_rows(const Rows *r, int64_t first, int64_t many) { beside(r, first, many, '+'); }
FOR_EACH_CPU static void subtract_rows(const Rows *r, int64_t first, int64_t many) { beside(r, first, many, '-'); }
FOR_EACH_CPU static void multiply_rows(const Rows *r, int64_t first, int64_t many) { beside(r, first, many, '*'); }
FOR_EACH_CPU static void less_rows(const Rows *r, int64_t first, int64_t many) { beside(r, first, many, '<'); }

/* Windows of images: x's rows are images, y's their windows. The numbers: y's elements, y's columns, x's columns, then of
   both axes the window, its stride and the padding. */
typedef struct { int64_t size, columns, width, height, down, right, by_row, by_column, above, before; } Windows;

INLINE Windows windows_of(const Rows *r) {
    int64_t n[9];
    for (int j = 0; j < 9; j++)
        n[j] = (int64_t)r->number[j];
    return (Windows){n[0], n[1], n[2], r->n / n[2], n[3], n[4], n[5], n[6], n[7], n[8]};
}

/* Whether all of a window is in the image, for all windows. */
INLINE int all_inside(const Windows *w) {
    return w->above == 0 && w->before == 0 && (w->size / w->columns - 1) * w->by_row + w->down <= w->height &&
           (w->columns - 1) * w->by_column + w->right <= w->width;
}

INLINE float largest(const float *x, int64_t width, int64_t down, int64_t right) { /* NaN is the largest */
    float most = -INFINITY;
    int unordered = 0;
    for (int64_t p = 0; p < down; p++)
        for (int64_t q = 0; q < right; q++) {
            float v = x[p * width + q];
            most = v > most ? v : most, unordered |= v != v;
        }
    return unordered ? NAN : most;
}

INLINE void give_first(float g, float y, const float *x, float *out, int64_t width, int64_t down, int64_t right) {
    uint32_t left, given; /* by masks: where the largest lies is no branch that a processor can foresee */
    float part;
    memcpy(&left, &g, 4);
    for (int64_t p = 0; p < down; p++)
        for (int64_t q = 0; q < right; q++) {
            uint32_t is_it = (uint32_t)(x[p * width + q] < y) - 1;
            given = left & is_it, left &= ~is_it;
            memcpy(&part, &given, 4);
            out[p * width + q] += part;
        }
}

/* Runs what follows for the k-th window, whose part in the image is down x right from `at` on. */
#define EACH_WINDOW(w)                                                                                                      \
    for (int64_t k = 0, row = -(w).above, i = 0; k < (w).size; row += (w).by_row, i++)                                        \
        for (int64_t column = -(w).before; k < (i + 1) * (w).columns; column += (w).by_column, k++)
#define PART_INSIDE(w)                                                                                                      \
    int64_t top = row < 0 ? 0 : row, left = column < 0 ? 0 : column, at = top * (w).width + left;                             \
    int64_t down = (row + (w).down < (w).height ? row + (w).down : (w).height) - top;                                         \
    int64_t right = (column + (w).right < (w).width ? column + (w).right : (w).width) - left

/* x -> y, the largest element of each window, or NaN */
FOR_EACH_CPU static void pool_rows(const Rows *r, int64_t first, int64_t many) {
    Windows w = windows_of(r);
    int pairs = w.down == 2 && w.right == 2 && all_inside(&w);
    for (int64_t image = first; image < first + many; image++) {
        const float *x = r->a[0] + image * r->n;
        float *y = r->a[1] + image * w.size;
        EACH_WINDOW(w) {
            if (pairs)
                y[k] = largest(x + row * w.width + column, w.width, 2, 2);
            else {
                PART_INSIDE(w);
                y[k] = largest(x + at, w.width, down, right);
            }
        }
    }
}

/* g, x, y -> the cotangent of x, where y has the largest element of each window: the first that is not smaller */
FOR_EACH_CPU static void unpool_rows(const Rows *r, int64_t first, int64_t many) {
    Windows w = windows_of(r);
    int pairs = w.down == 2 && w.right == 2 && all_inside(&w);
    memset(r->a[3] + first * r->n, 0, many * r->n * 4);
    for (int64_t image = first; image < first + many; image++) {
        const float *g = r->a[0] + image * w.size, *x = r->a[1] + image * r->n, *y = r->a[2] + image * w.size;
        float *out = r->a[3] + image * r->n;
        EACH_WINDOW(w) {
            if (pairs) {
                int64_t at = row * w.width + column;
                give_first(g[k], y[k], x + at, out + at, w.width, 2, 2);
            } else {
                PART_INSIDE(w);
                if (y[k] > -INFINITY || (down == w.down && right == w.right))
                    give_first(g[k], y[k], x + at, out + at, w.width, down, right);
                else if (row >= 0 && column >= 0) /* what is padded is not smaller, and would be the first */
                    give_first(g[k], y[k], x + at, out + at, w.width, 1, 1);
            }
        }
    }
}

#define FLAT const int64_t begin = first * r->n, end = begin + many * r->n; INDEPENDENT for (int64_t k = begin; k < end; k++)
#define LINEAR 1.5957691216057308f /* sqrt(8 / pi): gelu(x) = x s(u), u = LINEAR x + CUBIC x^3, s the sigmoid */
#define CUBIC (0.044715f * LINEAR)

INLINE float share_of(float x) { /* s(u) */
    float u = x * (LINEAR + CUBIC * (x * x)), s = sigmoid_of(u);
    return u < -87.0f ? 0.0f : s;
}

FOR_EACH_CPU static void gelu_rows(const Rows *r, int64_t first, int64_t many) {
    const float *x = r->a[0];
    float *y = r->a[1];
    FLAT y[k] = x[k] * share_of(x[k]);
}

FOR_EACH_CPU static void gelu_back_rows(const Rows *r, int64_t first, int64_t many) {
    const float *g = r->a[0], *x = r->a[1];
    float *out = r->a[2];
    FLAT {
        float s = share_of(x[k]);
        out[k] = g[k] * (s + x[k] * s * (1.0f - s) * (LINEAR + 3.0f * CUBIC * (x[k] * x[k])));
    }
}

FOR_EACH_CPU static void relu_rows(const Rows *r, int64_t first, int64_t many) {
    const float *x = r->a[0];
    float *y = r->a[1];
    FLAT y[k] = x[k] <= 0 ? 0 : x[k]; /* NaN stays */
}

FOR_EACH_CPU static void selu_rows(const Rows *r, int64_t first, int64_t many) { /* Klambauer et al. 2017 */
    const float *x = r->a[0], scale = 1.0507009873554805f, alpha = 1.6732632423543772f;
    float *y = r->a[1];
    FLAT {
        float power, part = exp_parts(x[k] < -87.0f ? -87.0f : x[k] > 0 ? 0 : x[k], &power);
        y[k] = scale * (x[k] > 0 ? x[k] : alpha * (part * power + (power - 1.0f)));
    }
}

/* 8-bit integers, which lie where an array of a quarter of the floats would: x times number[1], rounded, plus number[2],
   not below number[3], which NaN becomes, nor above number[4] */
FOR_EACH_CPU static void quantize_rows(const Rows *r, int64_t first, int64_t many) {
    const float *x = r->a[0], inverse = r->number[1], zero = r->number[2], low = r->number[3], high = r->number[4];
    uint8_t *q = (uint8_t *)r->a[1];
    FLAT {
        float v = rintf(x[k] * inverse) + zero;
        v = v > low ? v : low;
        q[k] = (uint8_t)(int32_t)(v < high ? v : high);
    }
}

FOR_EACH_CPU static void relu_back_rows(const Rows *r, int64_t first, int64_t many) {
    const float *g = r->a[0], *y = r->a[1];
    float *out = r->a[2];
    FLAT out[k] = g[k] * (y[k] > 0 ? 1.0f : 0.0f);
}

/* One step of an LSTM with one cell, or more (npx/cells.py). Of each row: the sums [i, f of each cell, o, g] and the
   cells -> h, c, the gates, tanh(c). */
INLINE void cells_of(const Rows *r, int64_t first, int64_t many, int cells) {
    int64_t n = r->n, width = (cells + 3) * n;
    for (int64_t row = first; row < first + many; row++) {
        const float *a = r->a[0] + row * width, *old[2] = {r->a[1] + row * n, r->a[cells] + row * n};
        float *h = r->a[cells + 1] + row * n, *c = r->a[cells + 2] + row * n;
        float *gate = r->a[cells + 3] + row * width, *tanh_c = r->a[cells + 4] + row * n;
        INDEPENDENT
        for (int64_t k = 0; k < n; k++) {
            const float *at = a + k;
            float *to = gate + k;
            float i = sigmoid_of(at[0]), o = sigmoid_of(at[(cells + 1) * n]), g = tanh_of(at[(cells + 2) * n]), sum = i * g;
            for (int j = 0; j < cells; j++) {
                float f = sigmoid_of(at[(1 + j) * n]);
                to[(1 + j) * n] = f, sum += f * old[j][k];
            }
            to[0] = i, to[(cells + 1) * n] = o, to[(cells + 2) * n] = g;
            c[k] = sum, tanh_c[k] = tanh_of(sum), h[k] = o * tanh_c[k];
        }
    }
}

/* gh, gc, the gates, tanh(c) and the cells -> the cotangents of the sums and of each cell */
INLINE void cells_back(const Rows *r, int64_t first, int64_t many, int cells) {
    int64_t n = r->n, width = (cells + 3) * n;
    for (int64_t row = first; row < first + many; row++) {
        const float *gh = r->a[0] + row * n, *gc = r->a[1] + row * n, *gate = r->a[2] + row * width;
        const float *tanh_c = r->a[3] + row * n, *old[2] = {r->a[4] + row * n, r->a[cells + 3] + row * n};
        float *d = r->a[cells + 4] + row * width, *dc[2] = {r->a[cells + 5] + row * n, r->a[2 * cells + 4] + row * n};
        INDEPENDENT
        for (int64_t k = 0; k < n; k++) {
            const float *at = gate + k;
            float *to = d + k, i = at[0], o = at[(cells + 1) * n], g = at[(cells + 2) * n], t = tanh_c[k];
            float u = gc[k] + gh[k] * o * (1.0f - t * t);
            for (int j = 0; j < cells; j++) {
                float f = at[(1 + j) * n];
                to[(1 + j) * n] = u * old[j][k] * f * (1.0f - f), dc[j][k] = u * f;
            }
            to[0] = u * g * i * (1.0f - i), to[(cells + 1) * n] = gh[k] * t * o * (1.0f - o);
            to[(cells + 2) * n] = u * i * (1.0f - g * g);
        }
    }
}

FOR_EACH_CPU static void cell_rows(const Rows *r, int64_t first, int64_t many) { cells_of(r, first, many, 1); }
FOR_EACH_CPU static void tree_rows(const Rows *r, int64_t first, int64_t many) { cells_of(r, first, many, 2); }
FOR_EACH_CPU static void cell_back_rows(const Rows *r, int64_t first, int64_t many) { cells_back(r, first, many, 1); }
FOR_EACH_CPU static void tree_back_rows(const Rows *r, int64_t first, int64_t many) { cells_back(r, first, many, 2); }

/* g -> w, m, v: Adam's step, with the numbers (beta1, beta2, rate, epsilon) */
FOR_EACH_CPU static void adam_rows(const Rows *r, int64_t first, int64_t many) {
    const float *g = r->a[0];
    float *w = r->a[1], *m = r->a[2], *v = r->a[3];
    float b1 = (float)r->number[0], b2 = (float)r->number[1], c1 = (float)(1 - r->number[0]);
    float c2 = (float)(1 - r->number[1]), rate = (float)r->number[2], epsilon = (float)r->number[3];
    FLAT {
        m[k] = m[k] * b1 + g[k] * c1;
        v[k] = v[k] * b2 + g[k] * g[k] * c2;
        w[k] -= m[k] / (sqrtf(v[k]) + epsilon) * rate;
    }
}

/* What each takes and gives: w, an array [rows, n]; r, a number for each row; c, for each column; or as many as told. A
   range is one of rows, of columns ("c"), or of the last argument's elements ("s"). */
static const struct { const char *name; RowsKernel kernel; const char *arrays; int written; char along; } KERNELS[] = {
    {"softmax", softmax_rows, "ww", 1},
    {"log_softmax", log_softmax_rows, "ww", 1},
    {"softmax_back", softmax_back_rows, "www", 2},
    {"log_softmax_back", log_softmax_back_rows, "www", 2},
    {"norm", norm_rows, "wccwrrr", 3},
    {"norm_back", norm_back_rows, "wwcrrw", 5},
    {"norm_sums", norm_sums_columns, "wwrrcc", 4, 'c'},
    {"channel_norm", channel_norm_rows, "wrrwrrr", 3},
    {"channel_norm_back", channel_norm_back_rows, "wwrrrwrr", 5},
    {"block_norm", block_norm_rows, "wsswsss", 3},
    {"block_norm_back", block_norm_back_rows, "wsssswwss", 6},
    {"block_norm_back_in_place", block_norm_back_in_place_rows, "wsssswss", 5},
    {"channel_sums", channel_sums_rows, "wr", 1},
    {"channel_add", channel_add_rows, "wrw", 2},
    {"sums", sums_columns, "ws", 1, 's'},
    {"totals", totals_rows, "wr", 1},
    {"scaled", scaled_rows, "wrw", 2},
    {"add", add_rows, "xgw", 2},
    {"subtract", subtract_rows, "xgw", 2},
    {"multiply", multiply_rows, "xgw", 2},
    {"less", less_rows, "xgw", 2},
    {"pool", pool_rows, "ws", 1},
    {"unpool", unpool_rows, "swsw", 3},
    {"gelu", gelu_rows, "ww", 1},
    {"gelu_back", gelu_back_rows, "www", 2},
    {"relu", relu_rows, "ww", 1},
    {"selu", selu_rows, "ww", 1},
    {"quantize", quantize_rows, "ws", 1},
    {"relu_back", relu_back_rows, "www", 2},
    {"cell", cell_rows, "swwwsw", 2},
    {"tree", tree_rows, "swwwwsw", 3},
    {"cell_back", cell_back_rows, "wwswwsw", 5},
    {"tree_back", tree_back_rows, "wwswwwsww", 6},
    {"adam", adam_rows, "wwww", 1},
};

static int64_t size_of(char letter, const Rows *r) {
    int64_t n = r->n, rows = r->rows;
    switch (letter) {
    case 'w': return rows * n;
    case 'r': return rows;
    case 's': return rows * (int64_t)r->number[0];
    case 'x': return n * (int64_t)r->number[1];
    case 'g': return r->number[0] > 0 ? rows / (int64_t)r->number[0] * n : 0;
    default: return n;
    }
}

typedef struct { Rows rows; RowsKernel kernel; int64_t length; int pieces; atomic_int errors; } Dealt;

static void rows_piece(void *what, int i) {
    Dealt *d = what;
    int64_t first = i * d->length / d->pieces;
    feclearexcept(ERRORS);
    d->kernel(&d->rows, first, (i + 1) * d->length / d->pieces - first);
    if (fetestexcept(ERRORS))
        atomic_store(&d->errors, 1);
}

/* kernel(name, rows, n, numbers, threads, *arrays): runs a kernel, cut as the size says, without the interpreter;
   whether there were floating point errors. None, and nothing done, where what is written is memory of another array. */
static PyObject *kernel(PyObject *self, PyObject *const *args, Py_ssize_t many) {
    Dealt d = {.pieces = 1};
    size_t k = 0, kernels = sizeof KERNELS / sizeof *KERNELS;
    const char *name = many > 5 ? PyUnicode_AsUTF8(args[0]) : NULL;
    while (name && k < kernels && strcmp(name, KERNELS[k].name))
        k++;
    if (!name || k == kernels || (size_t)many != 5 + strlen(KERNELS[k].arrays) || !PyTuple_Check(args[3]))
        return PyErr_SetString(PyExc_TypeError, "kernel takes a name, sizes, numbers and arrays"), NULL;
    d.rows.rows = PyLong_AsLongLong(args[1]), d.rows.n = PyLong_AsLongLong(args[2]);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args[3]) && i < 9; i++)
        d.rows.number[i] = PyFloat_AsDouble(PyTuple_GET_ITEM(args[3], i));
    long threads = PyLong_AsLong(args[4]);
    if (PyErr_Occurred())
        return NULL;
    int64_t whole = d.rows.rows * d.rows.n, sizes[9];
    Py_buffer buffers[9] = {{0}};
    for (int i = 0; i < many - 5; i++)
        sizes[i] = size_of(KERNELS[k].arrays[i], &d.rows);
    int good = floats(args + 5, (int)many - 5, KERNELS[k].written, sizes, buffers, d.rows.a);
    for (int i = 0; good && i < many - 5; i++)
        good = d.rows.a[i] != NULL;
    int apart = 1;
    for (int i = KERNELS[k].written; good && i < many - 5; i++)
        for (int j = 0; j < many - 5; j++)
            apart = apart && (i == j || d.rows.a[i] + sizes[i] <= d.rows.a[j] || d.rows.a[j] + sizes[j] <= d.rows.a[i]);
    if (good && apart && whole > 0) {
        char along = KERNELS[k].along;
        d.kernel = KERNELS[k].kernel, d.length = along == 'c' ? d.rows.n : along == 's' ? sizes[1] : d.rows.rows;
        int64_t most = whole / 8192, by = along ? d.length / 256 : d.length;
        by = along == 's' && by < d.rows.rows ? d.rows.rows : by;
        most = most < 16 ? most : 16, most = most < by ? most : by;
        d.pieces = most > 1 ? (int)most : 1;
        Py_BEGIN_ALLOW_THREADS
        share(rows_piece, &d, d.pieces, (int)threads);
        Py_END_ALLOW_THREADS
    }
    for (int i = 0; i < 9; i++)
        if (buffers[i].obj)
            PyBuffer_Release(buffers + i);
    if (!good && !PyErr_Occurred())
        PyErr_SetString(PyExc_ValueError, "kernel: None is no array here");
    return !good ? NULL : apart ? PyBool_FromLong(atomic_load(&d.errors)) : Py_NewRef(Py_None);
}
