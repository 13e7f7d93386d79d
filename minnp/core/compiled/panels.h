/* Part of team.c, once for floats and once for doubles: `Real` is the number, OF(name) what is of its kind. Products with a
   matrix packed in panels of columns as wide as two registers: a tile of the results stays in registers while a panel
   passes (Goto and van de Geijn 2008). A matrix that many products share, as the steps of a layer over time do, is packed
   once, where a BLAS packs anew at every product. On AMD's processors with AVX-512 large products are made so as well:
   OpenBLAS takes up to a quarter more time there, and twice where it keeps to AVX2, as on a processor that is newer than
   itself. A row's bits do not depend on the rows beside it. */
#ifndef LARGEST
#define LARGEST 8 /* rows of a tile */
#define WIDEST (128 / (int)sizeof(Real)) /* columns of a panel */
/* of a large product: how much is packed at a time, so that a panel fits the first cache and both sides the second */
#define DEPTH 320
#define TALL 128
#define SPAN (2048 / (int)sizeof(Real))
#define FAR 8192 /* bytes from row to row of the left side from which it is copied, too */
#define LEAD (DEPTH + 16) /* of the left side: its rows do not meet in the cache */

#ifndef __has_builtin
#define __has_builtin(x) 0
#endif
#define MIX __builtin_shufflevector
#define AT(p) (*(Four *)(p))

static int without_avx512; /* whether the BLAS has taken a processor with AVX-512 for one without */

/* Whether such a product is made faster here than by a BLAS. A better one is better at deep ones, for here they pass over
   their result often, and at narrow ones of floats. */
static int better_here(int64_t rows, int64_t columns, int64_t depth, size_t size) {
#if defined(__x86_64__) && defined(__GNUC__)
    int narrow = size == 8 || without_avx512;
    return rows >= 16 && columns >= (narrow ? 32 : 128) && depth >= (narrow ? 16 : 32) &&
           (depth <= 1024 || without_avx512) && __builtin_cpu_is("amd") && __builtin_cpu_supports("avx512f");
#else
    return 0;
#endif
}
#endif

typedef void (*OF(Tile))(int64_t depth, const Real *a, int64_t lead, const Real *panel, Real scale, int keep, Real *c,
                     int64_t c_lead);
typedef struct { int wide, rows[3]; OF(Tile) tiles[3]; } OF(Kernels); /* tiles of so many rows, the last of one */
typedef struct { const OF(Kernels) *kernels; Matrix w; Real *panels; } OF(Packed);

/* c [rows, 2 size] = scale * (a [rows, depth] @ panel [depth, 2 size]), added to what c was if keep, in vectors of so many
   numbers. */
#define TILE(name, target_of, size, many)                                                                               \
    target_of static void name(int64_t depth, const Real *a, int64_t lead, const Real *panel, Real scale, int keep,     \
                               Real *c, int64_t c_lead) {                                                               \
        typedef Real Vector __attribute__((vector_size(sizeof(Real) * size), aligned(4), may_alias));                   \
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
    TILE(OF(name##_most), target_of, size, most)                                                                        \
    TILE(OF(name##_two), target_of, size, 2)                                                                            \
    TILE(OF(name##_one), target_of, size, 1)                                                                            \
    static const OF(Kernels) OF(name) = {2 * size, {most, 2, 1}, {OF(name##_most), OF(name##_two), OF(name##_one)}};

KERNELS(in_short_vectors, , 16 / (int)sizeof(Real), 4)
#if defined(__x86_64__) && defined(__GNUC__)
KERNELS(in_avx2, __attribute__((target("avx2,fma"))), 32 / (int)sizeof(Real), 4)
KERNELS(in_avx512, __attribute__((target("avx512f"))), 64 / (int)sizeof(Real), LARGEST)
#endif
#undef TILE
#undef KERNELS

static const OF(Kernels) *OF(kernels_here)(void) {
#if defined(__x86_64__) && defined(__GNUC__)
    if (__builtin_cpu_supports("avx512f"))
        return &OF(in_avx512);
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return &OF(in_avx2);
#endif
    return &OF(in_short_vectors);
}

/* from [rows, columns] to [columns, rows], of which each row begins `lead` after the one before */
INLINE void OF(turn)(const Real *restrict from, Real *restrict to, int64_t rows, int64_t columns, int64_t from_lead, int64_t to_lead) {
    int64_t done = 0;
#if __has_builtin(__builtin_shufflevector)
    typedef Real Four __attribute__((vector_size(4 * sizeof(Real)), aligned(4), may_alias));
    for (; done + 4 <= rows; done += 4) {
        const Real *row = from + done * from_lead;
        int64_t j = 0;
        for (; j + 4 <= columns; j += 4) {
            Four a = AT(row + j), b = AT(row + from_lead + j), c = AT(row + 2 * from_lead + j), d = AT(row + 3 * from_lead + j);
            Four ab = MIX(a, b, 0, 4, 1, 5), cd = MIX(c, d, 0, 4, 1, 5);
            Four ab_end = MIX(a, b, 2, 6, 3, 7), cd_end = MIX(c, d, 2, 6, 3, 7);
            Real *at = to + j * to_lead + done;
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

FOR_EACH_CPU static void OF(turn_side)(const Real *from, Real *to, int64_t rows, int64_t columns, int64_t from_lead, int64_t to_lead) {
    OF(turn)(from, to, rows, columns, from_lead, to_lead);
}

static void OF(pack_panel)(void *what, int index) {
    OF(Packed) *p = what;
    const Real *w = (const Real *)p->w.data;
    int64_t wide = p->kernels->wide, first = index * wide, left = p->w.columns - first, many = left < wide ? left : wide;
    Real *to = p->panels + first * p->w.rows;
    if (many < wide)
        memset(to, 0, p->w.rows * wide * sizeof(Real));
    if (p->w.flag == 'T')
        OF(turn_side)(w + first * p->w.lead, to, many, p->w.rows, p->w.lead, wide);
    else
        for (int64_t k = 0; k < p->w.rows; k++, to += wide)
            memcpy(to, w + k * p->w.lead + first, many * sizeof(Real));
}

/* c [rows, w.columns] = scale * (a [rows, w.rows] @ w), added to what c was if keep */
static void OF(times_packed)(const OF(Packed) *p, const Real *a, int64_t lead, int64_t rows, Real scale, int keep, Real *c,
                         int64_t c_lead) {
    Real edge[LARGEST * WIDEST];
    int64_t depth = p->w.rows, wide = p->kernels->wide;
    for (int64_t column = 0; column < p->w.columns; column += wide) {
        const Real *panel = p->panels + column * depth;
        int64_t left = p->w.columns - column;
        for (int64_t row = 0, many; row < rows; row += many) {
            int which = 0;
            while ((many = p->kernels->rows[which]) > rows - row)
                which++;
            Real *to = c + row * c_lead + column;
            const Real *from = a + row * lead;
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

/* c = scale * (a @ b), added to what c was if keep, on this thread; 0, and nothing done, where a BLAS does better. */
static int OF(multiply_packed)(Matrix a, Matrix b, Matrix c, Real scale, int keep) {
    if (!better_here(c.rows, c.columns, b.rows, sizeof(Real)))
        return 0;
    OF(Packed) p = {.kernels = OF(kernels_here)(), .panels = malloc(sizeof(Real) * (DEPTH * SPAN + LEAD * TALL))};
    if (!p.panels)
        return 0;
    Real *beside = p.panels + DEPTH * SPAN; /* the left side, where the steps from row to row are short */
    int far = a.lead * sizeof(Real) >= FAR;
    for (int64_t column = 0, columns; column < c.columns; column += columns) {
        columns = c.columns - column < SPAN ? c.columns - column : SPAN;
        for (int64_t at = 0, depth; at < b.rows; at += depth) {
            depth = b.rows - at < DEPTH ? b.rows - at : DEPTH;
            p.w = part(b, at, depth, column, columns, sizeof(Real));
            for (int i = 0; i * p.kernels->wide < columns; i++)
                OF(pack_panel)(&p, i);
            for (int64_t row = 0, rows; row < c.rows; row += rows) {
                rows = c.rows - row < TALL ? c.rows - row : TALL;
                const Real *left = (Real *)part(a, row, rows, at, depth, sizeof(Real)).data;
                if (a.flag == 'T')
                    OF(turn_side)(left, beside, depth, rows, a.lead, LEAD);
                else if (far)
                    for (int64_t i = 0; i < rows; i++)
                        memcpy(beside + i * LEAD, left + i * a.lead, depth * sizeof(Real));
                if (a.flag == 'T' || far)
                    left = beside;
                OF(times_packed)(&p, left, left == beside ? LEAD : a.lead, rows, scale, keep || at,
                                 (Real *)c.data + row * c.lead + column, c.lead);
            }
        }
    }
    free(p.panels);
    return 1;
}
