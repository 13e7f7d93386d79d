/* Part of team.c. Products of a few rows of floats with one matrix that many such products share, as the steps of a layer
   over time do: the matrix is packed once, in panels of columns as wide as two registers, and a tile of the results stays
   in registers while a panel passes (Goto and van de Geijn 2008). A BLAS packs anew at every product. A row's bits do
   not depend on the rows beside it. */
#define LARGEST 8 /* rows of a tile */
#define WIDEST 32 /* columns of a panel */

typedef void (*Tile)(int64_t depth, const float *a, int64_t lead, const float *panel, float *c, int64_t c_lead);
typedef struct { int wide, rows[3]; Tile tiles[3]; } Kernels; /* tiles of so many rows, the last of one */
typedef struct { const Kernels *kernels; Matrix w; float *panels; } Packed;

/* c [rows, 2 size] += a [rows, depth] @ panel [depth, 2 size], in vectors of so many floats. */
#define TILE(name, target_of, size, many)                                                                               \
    target_of static void name(int64_t depth, const float *a, int64_t lead, const float *panel, float *c, int64_t c_lead) {\
        typedef float Vector __attribute__((vector_size(4 * size), aligned(4), may_alias));                             \
        Vector sums[many][2];                                                                                           \
        _Pragma("GCC unroll 8")                                                                                         \
        for (int i = 0; i < many; i++)                                                                                  \
            sums[i][0] = *(Vector *)(c + i * c_lead), sums[i][1] = *(Vector *)(c + i * c_lead + size);                  \
        for (int64_t k = 0; k < depth; k++, panel += 2 * size) {                                                        \
            Vector left = *(const Vector *)panel, right = *(const Vector *)(panel + size);                              \
            for (int i = 0; i < many; i++)                                                                              \
                sums[i][0] += a[i * lead + k] * left, sums[i][1] += a[i * lead + k] * right;                            \
        }                                                                                                               \
        _Pragma("GCC unroll 8")                                                                                         \
        for (int i = 0; i < many; i++)                                                                                  \
            *(Vector *)(c + i * c_lead) = sums[i][0], *(Vector *)(c + i * c_lead + size) = sums[i][1];                  \
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

static void pack_panel(void *what, int index) {
    Packed *p = what;
    const float *w = (const float *)p->w.data;
    int64_t wide = p->kernels->wide, first = index * wide, by_row = p->w.flag == 'N' ? p->w.lead : 1;
    int64_t by_column = p->w.flag == 'N' ? 1 : p->w.lead;
    float *to = p->panels + first * p->w.rows;
    for (int64_t k = 0; k < p->w.rows; k++)
        for (int64_t j = 0; j < wide; j++)
            *to++ = first + j < p->w.columns ? w[k * by_row + (first + j) * by_column] : 0.0f;
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

/* c [rows, w.columns] += a [rows, w.rows] @ w */
static void add_product(const Packed *p, const float *a, int64_t lead, int64_t rows, float *c, int64_t c_lead) {
    float edge[LARGEST * WIDEST];
    int64_t depth = p->w.rows, wide = p->kernels->wide;
    for (int64_t column = 0; column < p->w.columns; column += wide) {
        const float *panel = p->panels + column * depth;
        int64_t left = p->w.columns - column, size = 4 * (left < wide ? left : wide);
        for (int64_t row = 0, many; row < rows; row += many) {
            int which = 0;
            while ((many = p->kernels->rows[which]) > rows - row)
                which++;
            float *to = c + row * c_lead + column;
            const float *from = a + row * lead;
            if (left >= wide) {
                p->kernels->tiles[which](depth, from, lead, panel, to, c_lead);
                continue;
            }
            memset(edge, 0, sizeof edge);
            for (int64_t i = 0; i < many; i++)
                memcpy(edge + i * wide, to + i * c_lead, size);
            p->kernels->tiles[which](depth, from, lead, panel, edge, wide);
            for (int64_t i = 0; i < many; i++)
                memcpy(to + i * c_lead, edge + i * wide, size);
        }
    }
}
