/* Part of team.c. Products of floats with a matrix packed in panels of columns as wide as two registers: a tile of the
   results stays in registers while a panel passes (Goto and van de Geijn 2008). A matrix that many products share, as the
   steps of a layer over time do, is packed once, where a BLAS packs anew at every product. On AMD's processors with
   AVX-512 large products are made so as well: OpenBLAS takes up to a quarter more time there, and twice where it keeps to
   AVX2. A row's bits do not depend on the rows beside it. */
#define LARGEST 8 /* rows of a tile */
#define WIDEST 32 /* columns of a panel */
/* of a large product: how much is packed at a time, so that a panel fits the first cache and both sides the second */
#define DEPTH 320
#define TALL 128
#define SPAN 512
#define LEAD (DEPTH + 16) /* of the left side turned: its rows do not meet in the cache */

#ifndef __has_builtin
#define __has_builtin(x) 0
#endif

typedef void (*Tile)(int64_t depth, const float *a, int64_t lead, const float *panel, float scale, int keep, float *c,
                     int64_t c_lead);
typedef struct { int wide, rows[3]; Tile tiles[3]; } Kernels; /* tiles of so many rows, the last of one */
typedef struct { const Kernels *kernels; Matrix w; float *panels; } Packed;

/* c [rows, 2 size] = scale * (a [rows, depth] @ panel [depth, 2 size]), added to what c was if keep, in vectors of so many
   floats. */
#define TILE(name, target_of, size, many)                                                                               \
    target_of static void name(int64_t depth, const float *a, int64_t lead, const float *panel, float scale, int keep,  \
                               float *c, int64_t c_lead) {                                                              \
        typedef float Vector __attribute__((vector_size(4 * size), aligned(4), may_alias));                             \
        Vector sums[many][2];                                                                                           \
        _Pragma("GCC unroll 8")                                                                                         \
        for (int i = 0; i < many; i++)                                                                                  \
            sums[i][0] = sums[i][1] = (Vector){0}, __builtin_prefetch(c + i * c_lead, 0, 2),                            \
            __builtin_prefetch(c + i * c_lead + size, 0, 2);                                                            \
        for (int64_t k = 0; k < depth; k++, panel += 2 * size) {                                                        \
            Vector left = *(const Vector *)panel, right = *(const Vector *)(panel + size);                              \
            for (int i = 0; i < many; i++)                                                                              \
                sums[i][0] += a[i * lead + k] * left, sums[i][1] += a[i * lead + k] * right;                            \
        }                                                                                                               \
        _Pragma("GCC unroll 8")                                                                                         \
        for (int i = 0; i < many; i++) {                                                                                \
            Vector *left = (Vector *)(c + i * c_lead), *right = (Vector *)(c + i * c_lead + size);                      \
            *left = keep ? *left + scale * sums[i][0] : scale * sums[i][0];                                             \
            *right = keep ? *right + scale * sums[i][1] : scale * sums[i][1];                                           \
        }                                                                                                               \
    }
#define KERNELS(name, target_of, size, most)                                                                            \
    TILE(name##_most, target_of, size, most)                                                                            \
    TILE(name##_two, target_of, size, 2)                                                                                \
    TILE(name##_one, target_of, size, 1)                                                                                \
    static const Kernels name = {2 * size, {most, 2, 1}, {name##_most, name##_two, name##_one}};

KERNELS(in_vectors_of_4, , 4, 4)
#if defined(__x86_64__) && defined(__GNUC__)
KERNELS(in_vectors_of_8, __attribute__((target("avx2,fma"))), 8, 4)
KERNELS(in_vectors_of_16, __attribute__((target("avx512f"))), 16, LARGEST)
#endif

static const Kernels *kernels_here(void) {
#if defined(__x86_64__) && defined(__GNUC__)
    if (__builtin_cpu_supports("avx512f"))
        return &in_vectors_of_16;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return &in_vectors_of_8;
#endif
    return &in_vectors_of_4;
}

/* from [rows, columns] to [columns, rows], of which each row begins `lead` after the one before */
INLINE void turn(const float *restrict from, float *restrict to, int64_t rows, int64_t columns, int64_t from_lead, int64_t to_lead) {
    int64_t done = 0;
#if __has_builtin(__builtin_shufflevector)
    typedef float Four __attribute__((vector_size(16), aligned(4), may_alias));
#define MIX __builtin_shufflevector
#define AT(p) (*(Four *)(p))
    for (; done + 4 <= rows; done += 4) {
        const float *row = from + done * from_lead;
        int64_t j = 0;
        for (; j + 4 <= columns; j += 4) {
            Four a = AT(row + j), b = AT(row + from_lead + j), c = AT(row + 2 * from_lead + j), d = AT(row + 3 * from_lead + j);
            Four ab = MIX(a, b, 0, 4, 1, 5), cd = MIX(c, d, 0, 4, 1, 5);
            Four ab_end = MIX(a, b, 2, 6, 3, 7), cd_end = MIX(c, d, 2, 6, 3, 7);
            float *at = to + j * to_lead + done;
            AT(at) = MIX(ab, cd, 0, 1, 4, 5), AT(at + to_lead) = MIX(ab, cd, 2, 3, 6, 7);
            AT(at + 2 * to_lead) = MIX(ab_end, cd_end, 0, 1, 4, 5), AT(at + 3 * to_lead) = MIX(ab_end, cd_end, 2, 3, 6, 7);
        }
        for (; j < columns; j++)
            for (int i = 0; i < 4; i++)
                to[j * to_lead + done + i] = row[i * from_lead + j];
    }
#endif
    for (int64_t j = 0; j < columns; j++)
        INDEPENDENT
        for (int64_t i = done; i < rows; i++)
            to[j * to_lead + i] = from[i * from_lead + j];
}

static void pack_panel(void *what, int index) {
    Packed *p = what;
    const float *w = (const float *)p->w.data;
    int64_t wide = p->kernels->wide, first = index * wide, left = p->w.columns - first, many = left < wide ? left : wide;
    float *to = p->panels + first * p->w.rows;
    if (many < wide)
        memset(to, 0, p->w.rows * wide * 4);
    if (p->w.flag == 'T')
        turn(w + first * p->w.lead, to, many, p->w.rows, p->w.lead, wide);
    else
        for (int64_t k = 0; k < p->w.rows; k++, to += wide)
            memcpy(to, w + k * p->w.lead + first, many * 4);
}

/* p, for products with w; 0 if there is no memory. free(p->panels) when it is done with. */
static int pack(Packed *p, Matrix w, int threads) {
    p->kernels = kernels_here(), p->w = w;
    int64_t panels = (w.columns + p->kernels->wide - 1) / p->kernels->wide;
    p->panels = malloc(sizeof(float) * panels * p->kernels->wide * w.rows);
    if (p->panels)
        share(pack_panel, p, (int)panels, threads);
    return p->panels != NULL;
}

/* c [rows, w.columns] = scale * (a [rows, w.rows] @ w), added to what c was if keep */
static void times_packed(const Packed *p, const float *a, int64_t lead, int64_t rows, float scale, int keep, float *c,
                         int64_t c_lead) {
    float edge[LARGEST * WIDEST];
    int64_t depth = p->w.rows, wide = p->kernels->wide;
    for (int64_t column = 0; column < p->w.columns; column += wide) {
        const float *panel = p->panels + column * depth;
        int64_t left = p->w.columns - column;
        for (int64_t row = 0, many; row < rows; row += many) {
            int which = 0;
            while ((many = p->kernels->rows[which]) > rows - row)
                which++;
            float *to = c + row * c_lead + column;
            const float *from = a + row * lead;
            if (left >= wide) {
                p->kernels->tiles[which](depth, from, lead, panel, scale, keep, to, c_lead);
                continue;
            }
            p->kernels->tiles[which](depth, from, lead, panel, scale, 0, edge, wide);
            for (int64_t i = 0; i < many; i++)
                for (int64_t j = 0; j < left; j++)
                    to[i * c_lead + j] = keep ? to[i * c_lead + j] + edge[i * wide + j] : edge[i * wide + j];
        }
    }
}

/* Whether such a product is made faster here than by a BLAS. Deeper ones pass over their result so often that it is not. */
static int better_here(int64_t rows, int64_t columns, int64_t depth) {
#if defined(__x86_64__) && defined(__GNUC__)
    return rows >= 16 && columns >= 128 && depth >= 32 && depth <= 1024 && __builtin_cpu_is("amd") &&
           __builtin_cpu_supports("avx512f");
#else
    return 0;
#endif
}

/* c = scale * (a @ b), added to what c was if keep, on this thread; 0, and nothing done, where a BLAS does better. */
static int multiply_packed(Matrix a, Matrix b, Matrix c, float scale, int keep) {
    if (!better_here(c.rows, c.columns, b.rows))
        return 0;
    Packed p = {.kernels = kernels_here(), .panels = malloc(sizeof(float) * (DEPTH * SPAN + LEAD * TALL))};
    if (!p.panels)
        return 0;
    float *turned = p.panels + DEPTH * SPAN;
    for (int64_t column = 0, columns; column < c.columns; column += columns) {
        columns = c.columns - column < SPAN ? c.columns - column : SPAN;
        for (int64_t at = 0, depth; at < b.rows; at += depth) {
            depth = b.rows - at < DEPTH ? b.rows - at : DEPTH;
            p.w = part(b, at, depth, column, columns, 4);
            for (int i = 0; i * p.kernels->wide < columns; i++)
                pack_panel(&p, i);
            for (int64_t row = 0, rows; row < c.rows; row += rows) {
                rows = c.rows - row < TALL ? c.rows - row : TALL;
                const float *left = (float *)part(a, row, rows, at, depth, 4).data;
                if (a.flag == 'T')
                    turn(left, turned, depth, rows, a.lead, LEAD);
                times_packed(&p, a.flag == 'T' ? turned : left, a.flag == 'T' ? LEAD : a.lead, rows, scale, keep || at,
                             (float *)c.data + row * c.lead + column, c.lead);
            }
        }
    }
    free(p.panels);
    return 1;
}
